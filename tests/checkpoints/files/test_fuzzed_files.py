"""Thousands of hostile files are refused in a sentence: none runs code, fills the memory or hangs.

They are read in a process with a limit on its memory (`tests/hostile/reader.py`). The default is
every 17th of them; `pytest -m slow tests/checkpoints/files/test_fuzzed_files.py` reads all.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from sn_openmmlab.checkpoints.files.safe_loading import read_checkpoint
from sn_openmmlab.errors import UsageError
from tests.hostile.corpus import families

# Of these no file is read, whatever is in it.
REFUSED = 'calls of functions, by every opcode'
MAY_BE_READ = {
    'archives',
    'memory and time',
    'other formats and contents',
    'damaged files',
    'damaged pickles in whole files',
    'changed checkpoints of a training',
}


def read_corpus(every: int, folder: Path, repo: Path) -> dict:
    """Read every so many-th file of the corpus in a process of its own."""
    inner = folder / 'a/b'
    inner.mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-m', 'tests.hostile.reader', str(inner), str(every)],
        capture_output=True,
        text=True,
        cwd=repo,
        env={**os.environ, 'PYTHONPATH': str(repo)},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def check(found: dict) -> Counter:
    """Check what became of the files; return the number of each family's."""
    bad = {
        name: (end, said, deeds)
        for name, (end, said, deeds) in found['outcomes'].items()
        if end not in ('read', 'refused') or deeds
    }
    assert not bad, dict(list(bad.items())[:20])
    assert not found['escaped']
    # Of one GiB that the process may take; what one file holds comes to several MB.
    assert found['megabytes'] < 400
    for name, (end, said, _) in found['outcomes'].items():
        if end == 'refused':
            assert 'hostile.pth' in said and said.isprintable(), (name, said)
        else:
            assert name.split(':')[0] in MAY_BE_READ, name
    return Counter(name.split(':')[0] for name in found['outcomes'])


def test_a_part_of_all_hostile_files(tmp_path: Path, repo: Path) -> None:
    counts = check(read_corpus(17, tmp_path, repo))
    assert set(counts) == MAY_BE_READ | {REFUSED}
    assert counts.total() > 400


@pytest.mark.slow
def test_all_hostile_files(tmp_path: Path, repo: Path) -> None:
    counts = check(read_corpus(1, tmp_path, repo))
    assert counts.total() >= 2000
    page = (repo / 'docs/guides/train_and_test.md').read_text()
    for family, number in counts.items():
        assert f'| {family} | {number} |' in page
    assert f'{counts.total():,}' in page


def test_the_files_would_do_harm(tmp_path: Path) -> None:
    """Torch's own reader runs the code in them, where it may."""
    canary = tmp_path / 'canary'
    files = dict(families(str(canary))[REFUSED])
    file = tmp_path / 'file.pth'
    for name in ('REDUCE os.system zip weight', 'STACK_GLOBAL builtins.eval legacy message_hub'):
        file.write_bytes(files[name])
        with pytest.raises(UsageError):
            read_checkpoint(file)
        assert not canary.exists()
        torch.load(file, weights_only=False)
        assert canary.exists()
        canary.unlink()


@pytest.mark.parametrize(
    ('make', 'said'),
    [
        (lambda path: path.mkdir(), 'is a folder: name a checkpoint file in it'),
        (lambda path: os.mkfifo(path), 'is not a regular file'),
        (lambda path: path.symlink_to('/dev/zero'), 'is not a regular file'),
        (lambda path: path.symlink_to('/dev/null'), 'is not a regular file'),
        (lambda path: path.symlink_to(path.parent), 'is a folder'),
        (lambda path: path.symlink_to(path.parent / 'absent'), 'there is no checkpoint file'),
        (lambda path: path.symlink_to(path), 'there is no checkpoint file'),
        (lambda path: None, 'there is no checkpoint file'),
    ],
    ids=['folder', 'fifo', 'zero', 'null', 'to_folder', 'to_nothing', 'to_itself', 'nothing'],
)
def test_what_is_no_file(make: Callable, said: str, tmp_path: Path) -> None:
    path = tmp_path / 'odd.pth'
    make(path)
    with pytest.raises(UsageError, match=said):
        read_checkpoint(path)


@pytest.mark.parametrize('name', ['a' * 300, 'a\0b', 'a\udcffb.pth'], ids=['long', 'nul', 'bytes'])
def test_odd_names(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='there is no checkpoint file'):
        read_checkpoint(tmp_path / name)


def test_a_link_to_a_checkpoint_is_read(tmp_path: Path) -> None:
    torch.save({'a.b': torch.ones(1)}, tmp_path / 'weights.pth')
    (tmp_path / 'latest.pth').symlink_to('weights.pth')
    assert list(read_checkpoint(tmp_path / 'latest.pth')) == ['a.b']
