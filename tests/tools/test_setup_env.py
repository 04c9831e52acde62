"""The set-up script, with a stub in place of the environment's Python: no pip, no network."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import setup_env

ROOT = Path(__file__).resolve().parents[2]

# Stands for <venv>/bin/python: notes its arguments in calls.jsonl and gives the first answer of
# answers.json whose 'to' occurs in them; without one it succeeds in silence.
STUB = """#!{python} -S
import json, sys
from pathlib import Path

project = Path(__file__).parents[2]
arguments = sys.argv[1:]
if 'tomllib' in arguments[-1]:
    print((project / 'extras.json').read_text())
    sys.exit()
with open(project / 'calls.jsonl', 'a') as file:
    print(json.dumps(arguments), file=file)
answers = json.loads((project / 'answers.json').read_text())
for answer in answers:
    if answer['to'] in ' '.join(arguments):
        print(answer['output'], flush=True)
        if answer.get('once'):
            answers.remove(answer)
            (project / 'answers.json').write_text(json.dumps(answers))
        sys.exit(answer.get('code', 0))
"""

BUILDING = '  Building wheel for onedl-mmcv (pyproject.toml): started'
NO_NETWORK = (
    "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError('...: "
    "[Errno 101] Network is unreachable')': /simple/torch/"
)
BAD_MMCV = (
    'ImportError: .venv/lib/python3.11/site-packages/mmcv/_ext.cpython-311-x86_64-linux-gnu.so: '
    'undefined symbol: _ZN3c106detail14torchCheckFailE'
)


class Project:
    """A checkout with the project's pyproject.toml, and stubs in both environments."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture) -> None:
        self.folder = folder
        self.capsys = capsys
        shutil.copy(ROOT / 'pyproject.toml', folder)
        # The snippet that reads the extras needs a Python of its own, so it runs once here.
        read = [sys.executable, '-c', setup_env.READ_EXTRAS]
        extras = subprocess.run(read, cwd=folder, capture_output=True, text=True, check=True)
        (folder / 'extras.json').write_text(extras.stdout.strip())
        for venv in ('.venv', '.venv-openmmlab'):
            python = folder / venv / 'bin' / 'python'
            python.parent.mkdir(parents=True)
            python.write_text(STUB.format(python=sys.executable))
            python.chmod(0o755)
        self.answer()

    def answer(self, *answers: dict) -> None:
        (self.folder / 'answers.json').write_text(json.dumps(answers))

    def run(self, stack: str = 'onedl') -> list[str]:
        """Set the stack up; return what was printed, by lines."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(setup_env, 'ROOT', self.folder)
            patch.setattr(sys, 'argv', ['setup_env.py', stack])
            setup_env.main()
        shown = self.capsys.readouterr()
        assert shown.err == ''
        return shown.out.splitlines()

    def fail(self) -> tuple[list[str], str]:
        """Let the set-up fail; return what was printed, by lines, and the sentence."""
        with pytest.raises(SystemExit) as caught:
            self.run()
        shown = self.capsys.readouterr()
        assert caught.value.code == 2
        assert re.fullmatch(r'error: .*\.\n', shown.err)
        assert not (self.folder / '.venv' / '.complete').exists()
        return shown.out.splitlines(), shown.err

    def calls(self) -> list[str]:
        """Return what the stub was asked since the last time, without checks of pip and OpenCV."""
        file = self.folder / 'calls.jsonl'
        calls = [' '.join(json.loads(line)) for line in file.read_text().splitlines()]
        file.write_text('')
        return [call for call in calls if not call.endswith(('--version', 'import cv2'))]


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture) -> Project:
    return Project(tmp_path, capsys)


def test_set_up_installs_in_order_and_checks(project: Project) -> None:
    lines = project.run()
    tools, toolboxes, declaration, check = project.calls()
    assert re.search(r'torch==\S+ numpy==\S+ setuptools==\S+ ninja==\S+ psutil==\S+ wheel', tools)
    assert 'onedl' not in tools
    assert re.search(r'--no-build-isolation -e \.\[onedl,demo,dev(,docs)?\]$', toolboxes)
    assert declaration == str(ROOT / 'tools' / 'declare_torchvision_ops.py')
    assert check == '-c import mmcv.ops, mmdet, mmseg, mmpretrain'
    assert [line[:3] for line in lines[1:4]] == ['1/3', '2/3', '3/3']
    assert lines[-1].startswith('.venv is complete')


def test_second_run_returns_at_once(project: Project) -> None:
    project.run()
    project.calls()
    assert project.run() == ['.venv is complete']
    assert project.calls() == []


def test_changed_pin_installs_again(project: Project) -> None:
    project.run()
    pins = project.folder / 'pyproject.toml'
    pins.write_text(pins.read_text().replace('onedl-mmcv==2.3.6', 'onedl-mmcv==2.3.7'))
    project.calls()
    project.run()
    assert len(project.calls()) == 4


def test_changed_kernel_is_compiled_again(project: Project) -> None:
    source = project.folder / 'sn_openmmlab/kernels/cpp/csrc/loops.h'
    source.parent.mkdir(parents=True)
    source.write_text('first')
    project.run()
    source.write_text('second')
    project.calls()
    project.run()
    assert len(project.calls()) == 4


def test_moved_checkout_installs_again(project: Project, tmp_path_factory: object) -> None:
    project.run()
    project.folder = project.folder.rename(tmp_path_factory.mktemp('elsewhere') / 'project')
    project.calls()
    project.run()
    assert len(project.calls()) == 4


def test_second_stack_has_its_own_environment(project: Project) -> None:
    lines = project.run('openmmlab')
    assert lines[-1].startswith('.venv-openmmlab is complete')
    assert (project.folder / '.venv-openmmlab' / '.complete').is_file()
    assert not (project.folder / '.venv' / '.complete').exists()
    assert '-e .[openmmlab,demo,dev' in project.calls()[1]


def test_failed_set_up_is_explained_and_continued(project: Project) -> None:
    output = '\n'.join([*(f'line {n}' for n in range(50)), NO_NETWORK])
    project.answer({'to': 'torch==', 'output': output, 'code': 1, 'once': True})
    lines, said = project.fail()
    assert said.startswith('error: pip could not reach the package index')
    assert 'line 31' in lines
    assert 'line 30' not in lines
    assert 'line 30' in (project.folder / '.venv' / 'setup.log').read_text()
    assert project.run()[-1].startswith('.venv is complete')


def test_machine_without_libgl_gets_the_headless_opencv(project: Project) -> None:
    project.answer({'to': 'import cv2', 'output': 'ImportError: libGL.so.1', 'code': 1})
    project.run()
    _, _, headless, *_ = project.calls()
    assert re.search(r'--force-reinstall --no-deps opencv-python-headless==[\d.]+$', headless)


def test_import_error_is_shown(project: Project) -> None:
    output = 'AssertionError: MMCV==2.3.6 is used but incompatible.'
    project.answer({'to': 'import mmcv', 'output': output, 'code': 1})
    lines, said = project.fail()
    assert output in lines
    assert (
        "the packages are installed, but 'import mmcv.ops, mmdet, mmseg, mmpretrain' fails" in said
    )


@pytest.mark.skipif(not Path('/dev/full').exists(), reason='needs /dev/full')
def test_full_disk_is_told_when_the_log_cannot_be_written(project: Project) -> None:
    (project.folder / '.venv' / 'setup.log').symlink_to('/dev/full')
    assert project.fail()[1].startswith('error: the disk is full')


def test_missing_compiler_is_told_before_the_compile(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    project.answer({'to': '-e .', 'output': BUILDING})
    monkeypatch.setattr(setup_env.shutil, 'which', lambda name: None)
    assert 'but the C++ compiler c++ is missing' in project.fail()[1]
    monkeypatch.setattr(setup_env.shutil, 'which', lambda name: name)
    monkeypatch.setattr(setup_env.sysconfig, 'get_path', lambda name: str(tmp_path))
    assert f'but {tmp_path}/Python.h is missing' in project.fail()[1]


@pytest.mark.parametrize(
    ('output', 'sentence'),
    [
        ('OSError: [Errno 28] No space left on device', 'the disk is full'),
        (
            'c++: fatal error: Killed signal terminated program cc1plus\nninja: build stopped',
            'MAX_JOBS=1',
        ),
        ('OSError: CUDA_HOME environment variable is not set.', 'nvcc'),
        (BAD_MMCV, 'pip cache remove'),
        ('x.cpp:3: error: no such member\nninja: build stopped.', "'error:'"),
        ("ModuleNotFoundError: No module named 'mmcv._ext'", 'pip cache remove'),
        ('copying mmcv/utils/ext_loader.py\nadding mmcv/_ext.so', 'the general sentence'),
        (NO_NETWORK, 'check the network'),
        (f'{NO_NETWORK}\nERROR: No matching distribution found for torch', 'check the network'),
        ('ERROR: something else', 'the general sentence'),
    ],
)
def test_output_is_explained(output: str, sentence: str) -> None:
    assert sentence in setup_env.explain(output, 'the general sentence')


@pytest.mark.parametrize('version', [(3, 9, 18), (3, 14, 0)])
def test_unfit_python_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch, version: tuple
) -> None:
    monkeypatch.setattr(sys, 'version_info', version)
    _, said = project.fail()
    assert re.search(r'3\.10 to 3\.13 is needed.*PYTHON=', said)


def test_large_downloads_and_the_compile_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv('MAX_JOBS', '2')
    monkeypatch.setattr(setup_env, 'require_compiler', lambda: None)
    seconds = iter(range(0, 1000, 50))
    watch = setup_env.Progress('onedl', lambda: next(seconds))
    for line in (
        '  Downloading https://x.org/a/torch-2.13.0-cp311.whl (184.3 MB)',
        '  Downloading six-1.0.whl (11 kB)',
        '  [5/9] another package',
        BUILDING,
        *(f'  [{n}/12] c++ -MMD x.cpp' for n in range(1, 13)),
        '     90 |   bool grad_layout_enforcement_enabled_ : 1 = true;',
        '  Created wheel for onedl-mmcv: filename=onedl_mmcv-2.3.6-cp311.whl size=1',
        '  [10/10] another package',
    ):
        watch(line)
    assert capsys.readouterr().out.splitlines() == [
        '   downloading torch-2.13.0-cp311.whl (184.3 MB)',
        '   compiling mmcv: about 14 minutes with MAX_JOBS=2, only once',
        '   mmcv: 5 of 12 files compiled in 50 s',
        '   mmcv: 10 of 12 files compiled in 1 min 40 s',
        '   mmcv: 12 of 12 files compiled in 2 min 30 s',
    ]


def test_interrupted_set_up_ends_its_command_and_says_how_to_continue(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    project.answer({'to': '-e .', 'output': BUILDING})
    monkeypatch.setattr(setup_env, 'require_compiler', interrupt)
    assert project.fail()[1] == 'error: interrupted; run this again to continue.\n'


def test_missing_venv_module_is_told(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(project.folder / '.venv')
    monkeypatch.setattr(sys, 'executable', shutil.which('false'))
    assert re.search(r'apt install python3\.\d+-venv', project.fail()[1])


@pytest.mark.slow
def test_environment_is_created_with_pip(tmp_path: Path) -> None:
    python = tmp_path / 'bin' / 'python'
    setup_env.create(tmp_path, python)
    pip = [str(python), '-m', 'pip', '--version']
    assert subprocess.run(pip, capture_output=True).returncode == 0
    log = (tmp_path / 'setup.log').read_text()
    setup_env.create(tmp_path, python)
    assert (tmp_path / 'setup.log').read_text() == log


@pytest.mark.skipif(not shutil.which('make'), reason='needs make')
@pytest.mark.parametrize('stack', ['onedl', 'openmmlab'])
def test_makefile_uses_the_folder_of_the_stack(stack: str) -> None:
    outer_make = ('MAKEFLAGS', 'MFLAGS', 'MAKELEVEL', 'MAKEOVERRIDES', 'STACK')
    result = subprocess.run(
        ['make', '-n', 'test', f'STACK={stack}'],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in outer_make},
        capture_output=True,
        text=True,
    )
    assert f'tools/setup_env.py {stack}\n' in result.stdout
    assert f'{setup_env.STACKS[stack][0]}/bin/python -m pytest' in result.stdout
