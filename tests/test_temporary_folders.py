"""The folder of a test that passed is removed, that of a failed one is kept."""

from collections.abc import Callable
from pathlib import Path

FILE = """
import pytest

@pytest.fixture
def skipped():
    pytest.skip('before there is a folder')

def test_that_is_skipped(skipped, tmp_path):
    pass

def test_that_passes(tmp_path):
    (tmp_path / 'file').touch()

def test_that_fails(tmp_path):
    (tmp_path / 'file').touch()
    raise AssertionError
"""


def test_folders_of_failed_tests_stay_alone(repo: Path, run_tool: Callable, tmp_path: Path) -> None:
    (tmp_path / 'test_folders.py').write_text(FILE)
    options = ('-q', '-p', 'tests.conftest', '-p', 'no:cacheprovider', '--rootdir', tmp_path)
    files = ('-c', repo / 'pyproject.toml', '--basetemp', tmp_path / 'folders', tmp_path)
    done = run_tool('-m', 'pytest', *options, *files, code=1)
    assert '1 failed, 1 passed, 1 skipped' in done.stdout
    kept = [file.parent.name for file in (tmp_path / 'folders').glob('*/file')]
    assert set(kept) == {'test_that_fails0', 'test_that_failscurrent'}
