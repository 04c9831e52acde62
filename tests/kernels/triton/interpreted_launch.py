"""A kernel is started directly where that is known to be right, else by Triton's own launch."""

from types import SimpleNamespace

import pytest
import torch
from triton import knobs

from sn_openmmlab.kernels.triton import launch


class OldLauncher:
    def __call__(self, gridX, gridY, gridZ, stream, function, *args):
        started.append(args)


class NewLauncher:
    def __call__(
        self,
        gridX,
        gridY,
        gridZ,
        stream,
        function,
        kernel_metadata,
        launch_metadata,
        launch_enter_hook,
        launch_exit_hook,
        *args,
    ):
        hooks = (kernel_metadata, launch_metadata, launch_enter_hook, launch_exit_hook)
        started.append((*hooks, *args))


class UnknownLauncher:
    def __call__(self, grid, stream, *args):
        started.append(args)


started, ordinary = [], []


@pytest.fixture(autouse=True)
def nothing_started():
    started.clear()
    ordinary.clear()


def _kernel(launcher):
    """Return what stands for a compiled kernel, as far as `Launch` needs it."""
    compiled = SimpleNamespace(run=launcher(), function='function', packed_metadata='metadata')

    class Kernel:
        def __getitem__(self, grid):
            def run(*args, **options):
                ordinary.append((grid, args, options))
                return compiled

            return run

    return Kernel()


def _launch(launcher, programs=3):
    return launch.Launch(_kernel(launcher), programs, (7, 8), num_warps=4)


@pytest.mark.parametrize('launcher', [OldLauncher, NewLauncher])
def test_the_second_start_is_direct(launcher):
    first, second, start = torch.zeros(1), torch.zeros(1), _launch(launcher)

    start(5, first, None)
    start(5, second, None)

    assert ordinary == [((3,), (first, None, 7, 8), {'num_warps': 4})]
    assert started == [('metadata', None, None, None, second, None, 7, 8)]


@pytest.mark.parametrize(('launcher', 'stream'), [(UnknownLauncher, 5), (NewLauncher, None)])
def test_else_every_start_is_an_ordinary_one(launcher, stream):
    start = _launch(launcher)

    for _ in range(3):
        start(stream, torch.zeros(1))

    assert len(ordinary) == 3 and not started


def test_nothing_is_started_without_programs():
    start = _launch(NewLauncher, programs=0)

    start(5, torch.zeros(1))

    assert not ordinary and not started


@pytest.fixture
def on_stream(monkeypatch):
    """Make Triton one that compiles, for a device whose stream is 5."""
    monkeypatch.setattr(launch, '_INTERPRETS', False)
    active = SimpleNamespace(
        get_current_device=lambda: -1, get_current_stream=lambda device: 5 if device == -1 else 6
    )
    monkeypatch.setattr(launch, 'driver', SimpleNamespace(active=active))
    return active


def test_the_stream_is_that_of_the_current_device(on_stream):
    assert launch.direct_stream(torch.zeros(1)) == 5


def test_there_is_none_on_another_device(on_stream):
    on_stream.get_current_device = lambda: 0

    assert launch.direct_stream(torch.zeros(1)) is None


@pytest.mark.parametrize('name', ['launch_enter_hook', 'launch_exit_hook'])
def test_there_is_none_while_there_are_launch_hooks(on_stream, monkeypatch, name):
    hooks = getattr(knobs.runtime, name)
    hooks.add(print)
    assert launch.direct_stream(torch.zeros(1)) is None
    hooks.remove(print)
    assert launch.direct_stream(torch.zeros(1)) == 5

    monkeypatch.setattr(knobs.runtime, name, print)
    assert launch.direct_stream(torch.zeros(1)) is None


def test_there_is_none_in_the_interpreter():
    assert launch.direct_stream(torch.zeros(1)) is None
