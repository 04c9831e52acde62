"""No test leaves to the next what a run leaves in its process."""

import sys
from collections.abc import Iterator

import pytest
import torch
from mmengine.logging import MessageHub, MMLogger
from mmengine.registry import DefaultScope
from mmengine.utils import ManagerMixin
from mmengine.visualization import Visualizer


class OwnVisualizer(Visualizer):
    """A visualizer of a toolbox or a user."""


class OwnManager(ManagerMixin):
    """Another class whose instances are global."""


def start(name: str) -> None:
    """Make what a run of this name makes."""
    for manager in (MMLogger, MessageHub, Visualizer, OwnVisualizer, OwnManager):
        manager.get_instance(name)
    DefaultScope.get_instance(name, scope_name='mmdet')


def start_alone(folder: str) -> None:
    """Do what mmcv's SyncBN needs on one process, and what the config of an exported model does."""
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group('gloo', store=store, rank=0, world_size=1)
    sys.path.append(folder)


def names() -> list[list[str]]:
    """Return the names of the runs that each class knows."""
    managers = (MMLogger, MessageHub, Visualizer, OwnVisualizer, OwnManager, DefaultScope)
    return [list(manager._instance_dict) for manager in managers]


@pytest.fixture(scope='module')
def run_of_the_file() -> Iterator[None]:
    start('of the file')
    yield


@pytest.mark.parametrize('run', [1, 2])
def test_the_runs_of_earlier_tests_are_forgotten(run_of_the_file: None, run: int) -> None:
    assert names() == [['of the file']] * 6
    start(f'of test {run}')
    # A second group would be refused.
    start_alone(f'the folder of test {run}')
    assert [x for x in sys.path if 'the folder of test' in x] == [f'the folder of test {run}']
