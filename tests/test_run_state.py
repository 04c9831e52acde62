"""No test leaves to the next what a run leaves in its process, and no file to the next."""

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
import torch
from mmengine.logging import MessageHub, MMLogger
from mmengine.registry import DefaultScope
from mmengine.utils import ManagerMixin
from mmengine.visualization import Visualizer

FILE = """
import sys
import pytest
from torch import distributed
from mmengine.logging import MMLogger
from mmengine.visualization import Visualizer

@pytest.fixture(scope='session')
def run_of_the_session():
    MMLogger.get_instance(__file__)

@pytest.fixture(scope='module')
def run(run_of_the_session):
    assert list(MMLogger._instance_dict) == [__file__]
    assert not Visualizer._instance_dict and not distributed.is_initialized()
    assert not any('the folder of' in folder for folder in sys.path)
    Visualizer.get_instance('run')
    distributed.init_process_group('gloo', store=distributed.HashStore(), rank=0, world_size=1)
    sys.path.append(f'the folder of {__file__}')

@pytest.mark.parametrize('number', [1, 2])
def test_the_run_of_the_file_is_there(run, number):
    assert list(Visualizer._instance_dict) == ['run'] and distributed.is_initialized()
    assert sys.path[-1] == f'the folder of {__file__}'
"""


class OwnVisualizer(Visualizer):
    """A visualizer of a toolbox or a user."""


class OwnManager(ManagerMixin):
    """Another class whose instances are global."""


def start(name: str) -> None:
    """Make what a run of this name makes."""
    for manager in (MMLogger, MessageHub, Visualizer, OwnVisualizer, OwnManager):
        manager.get_instance(name)
    DefaultScope.get_instance(name, scope_name='mmdet')


def names() -> list[list[str]]:
    """Return the names of the runs that each class knows."""
    managers = (MMLogger, MessageHub, Visualizer, OwnVisualizer, OwnManager, DefaultScope)
    return [list(manager._instance_dict) for manager in managers]


@pytest.fixture(scope='module')
def run_of_the_file() -> Iterator[None]:
    start('of the file')
    yield


@pytest.mark.parametrize('run', [1, 2])
def test_earlier_tests_left_nothing(run_of_the_file: None, run: int, tmp_path: Path) -> None:
    assert names() == [['of the file']] * 6
    start(f'of test {run}')

    # As mmcv's SyncBN on one process needs it. A second group would be refused.
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group('gloo', store=store, rank=0, world_size=1)

    # As the config of an exported model does.
    (tmp_path / 'module_of_a_run.py').write_text(f'run = {run}')
    sys.path.append(str(tmp_path))
    assert import_module('module_of_a_run').run == run


def test_the_files_before_left_nothing(repo: Path, run_tool: Callable, tmp_path: Path) -> None:
    for name in ('a', 'b'):
        (tmp_path / f'test_{name}.py').write_text(FILE)
    options = ('-q', '-p', 'tests.conftest', '-p', 'no:cacheprovider', '--rootdir', tmp_path)
    done = run_tool('-m', 'pytest', *options, '-c', repo / 'pyproject.toml', tmp_path)
    assert '4 passed' in done.stdout
