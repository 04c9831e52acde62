"""What the ranks of a distributed training hold at its end, with SN and with SyncSN."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.processes import LIMIT

HOOK = """
import torch
from mmengine.dist import get_rank
from mmengine.hooks import Hook
from mmengine.registry import HOOKS


@HOOKS.register_module()
class KeepRankStates(Hook):
    def after_train(self, runner):
        state = runner.model.module.state_dict()
        torch.save(state, f'{runner.work_dir}/rank{get_rank()}.pt')
"""
CONFIG = """
_base_ = '{base}'
custom_imports = dict(imports=['sn_openmmlab', 'keep_rank_states'], allow_failed_imports=False)
custom_hooks = [dict(type='KeepRankStates')]
model = dict(
    backbone=dict(norm_cfg=dict(type='SyncSN')), decode_head=dict(norm_cfg=dict(type='SN'))
)
train_dataloader = dict(batch_size=1)
"""


Launch = Callable[..., str]


@pytest.fixture(scope='module')
def launch(
    repo: Path, tool_env: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Launch:
    """Return a function that runs a launch script with its arguments, and returns what it prints.

    Modules in the folder ``modules`` can be imported.
    """
    if torch.cuda.device_count() == 1:
        pytest.skip('two processes need two GPUs, and here is one')
    elsewhere = tmp_path_factory.mktemp('elsewhere')

    def run(script: str, *args: object, modules: Path) -> str:
        with socket.create_server(('127.0.0.1', 0)) as server:
            port = str(server.getsockname()[1])
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ['PATH']])
        done = subprocess.run(
            [repo / 'tools' / script, *map(str, args)],
            env=dict(tool_env, PATH=path, PORT=port, PYTHONPATH=str(modules)),
            cwd=elsewhere,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    return run


@pytest.fixture(scope='module')
def run(
    launch: Launch, segmentation_config: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """Return the config and the work folder of two ranks after two iterations, with both norms."""
    folder = tmp_path_factory.mktemp('ddp')
    (folder / 'keep_rank_states.py').write_text(HOOK)
    config = folder / 'tiny_sync_segmentation.py'
    config.write_text(CONFIG.format(base=segmentation_config))
    launch('dist_train.sh', config, 2, '--work-dir', folder, modules=folder)
    return config, folder


@pytest.fixture(scope='module')
def states(run: tuple[Path, Path]) -> list[dict[str, torch.Tensor]]:
    """Return the weights of the two ranks."""
    return [torch.load(run[1] / f'rank{rank}.pt', weights_only=True) for rank in (0, 1)]


def _differing(states: list[dict[str, torch.Tensor]]) -> set[str]:
    first, second = states
    assert first.keys() == second.keys()
    return {name for name in first if not torch.equal(first[name], second[name])}


def test_parameters_are_equal_and_trained(states: list[dict[str, torch.Tensor]]) -> None:
    assert not [name for name in _differing(states) if 'running' not in name]
    for part in ('backbone.sn1', 'decode_head.convs.0.sn'):
        for name in ('mean_weight', 'var_weight'):
            assert not torch.equal(states[0][f'{part}.{name}'], torch.ones(3))
        assert states[0][f'{part}.num_batches_tracked'] == 2


def test_only_those_of_sync_sn_have_the_same_running_statistics(
    states: list[dict[str, torch.Tensor]],
) -> None:
    # Each rank saw other images: MMEngine does not broadcast buffers.
    running = {name for name in states[0] if 'running' in name}
    assert _differing(states) == {name for name in running if name.startswith('decode_head')}
    assert {name.split('.')[0] for name in running} == {'backbone', 'decode_head'}


def test_the_checkpoint_is_tested_by_two_ranks(run: tuple[Path, Path], launch: Launch) -> None:
    config, folder = run
    args = (config, folder / 'epoch_1.pth', 2, '--work-dir', folder / 'test')
    assert 'mIoU' in launch('dist_test.sh', *args, modules=folder)
