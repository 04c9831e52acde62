"""The command line makes the data, repeatably, and fails in one sentence."""

import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope='module')
def main():
    return runpy.run_module('studies.make_demo_data')['main']


def _start(*arguments):
    return subprocess.Popen(
        [sys.executable, '-m', 'studies.make_demo_data', *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_another_process_makes_the_same_data(tmp_path, demo_root):
    made = tmp_path / 'demo'
    process = _start('--out', made, '--train', 6, '--val', 3, '--seed', 3)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert f'Made the demo data in {made}:\n  train: 6 images with ' in output
    files = {path.relative_to(demo_root) for path in demo_root.rglob('*.*')}
    assert files == {path.relative_to(made) for path in made.rglob('*.*')}
    crops = [file for file in files if file.parts[0] == 'digits']
    assert len(files) - len(crops) == 3 + 2 * 9
    for file in files:
        if file.suffix == '.json':
            assert (made / file).read_bytes() == (demo_root / file).read_bytes()
        else:
            np.testing.assert_array_equal(Image.open(made / file), Image.open(demo_root / file))


def test_a_second_run_says_that_it_found_the_data(main, demo_root, capsys):
    main(['--out', str(demo_root), '--train', '6', '--val', '3', '--seed', '3'])
    assert capsys.readouterr().out.startswith(f'Found the demo data in {demo_root}:\n')


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['--train', '0'], 'at least 1 train and 1 val image'),
        (['--seed', '-4'], 'must be 0 or more'),
        (['--out', __file__], 'is not demo data'),
        (['--out', f'{__file__}/demo'], 'the demo data cannot be written'),
    ],
)
def test_errors_are_one_sentence_and_exit_2(main, tmp_path, capsys, arguments, message):
    with pytest.raises(SystemExit) as caught:
        main(['--out', str(tmp_path / 'demo'), *arguments])
    assert caught.value.code == 2
    output, errors = capsys.readouterr()
    assert output == ''
    assert errors.startswith('error: ') and message in errors
    assert errors.count('\n') == 1
    assert list(tmp_path.iterdir()) == []


def test_torch_is_not_imported(tmp_path):
    code = 'import sys; from studies import make_demo_data; print("torch" in sys.modules)'
    done = subprocess.run([sys.executable, '-c', code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == 'False\n'


def test_a_terminated_run_leaves_nothing(tmp_path):
    process = _start('--out', tmp_path / 'demo', '--train', 100000)
    deadline = time.monotonic() + 120
    while not list(tmp_path.rglob('*.png')) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(tmp_path.rglob('*.png'))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 143
    assert list(tmp_path.iterdir()) == []
