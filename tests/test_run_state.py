"""No test leaves to the next what mmengine keeps of a run for the whole process."""

from collections.abc import Iterator

import pytest
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
