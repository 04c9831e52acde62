"""The scripts that start a training or a test once per GPU pass on what they are given.

test_train_ddp.py runs them.
"""

import os
import stat
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Call = Callable[..., list[str]]


@pytest.fixture
def call(repo: Path, tmp_path: Path) -> Call:
    """Return a function that runs a script, and returns the command line that it ends in.

    ``python`` and ``srun`` on its path only print their arguments, one a line.
    """
    for name in ('python', 'srun'):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\nprintf "%s\\n" {name} "$@" "PYTHONPATH=$PYTHONPATH"\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def run(script: str, *args: str, env: Mapping[str, str] | None = None) -> list[str]:
        names = ('NNODES', 'NODE_RANK', 'MASTER_ADDR', 'PORT', 'GPUS', 'SRUN_ARGS', 'PYTHONPATH')
        own = {name: value for name, value in os.environ.items() if name not in names}
        done = subprocess.run(
            [repo / 'tools' / script, *args],
            env={**own, **(env or {}), 'PATH': f'{tmp_path}:{os.environ["PATH"]}'},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()

    return run


def test_train_on_one_machine(call: Call, repo: Path) -> None:
    options = ['--work-dir', 'a folder', '--cfg-options', 'key="[a, b]"']
    assert call('dist_train.sh', 'my config.py', '4', *options) == [
        *('python', '-m', 'torch.distributed.run'),
        *('--nnodes', '1', '--node-rank', '0', '--nproc-per-node', '4'),
        *('--master-addr', '127.0.0.1', '--master-port', '29500'),
        *(f'{repo}/tools/train.py', 'my config.py', *options, '--launcher', 'pytorch'),
        f'PYTHONPATH={repo}/tools/..',
    ]


def test_test_on_one_of_several_machines(call: Call, repo: Path) -> None:
    env = dict(NNODES='3', NODE_RANK='2', MASTER_ADDR='10.0.0.1', PORT='7000', PYTHONPATH='mine')
    assert call('dist_test.sh', 'config.py', 'weights.pth', '8', '--tta', env=env) == [
        *('python', '-m', 'torch.distributed.run'),
        *('--nnodes', '3', '--node-rank', '2', '--nproc-per-node', '8'),
        *('--master-addr', '10.0.0.1', '--master-port', '7000'),
        *(f'{repo}/tools/test.py', 'config.py', 'weights.pth', '--tta', '--launcher', 'pytorch'),
        f'PYTHONPATH={repo}/tools/..:mine',
    ]


def test_train_with_slurm(call: Call, repo: Path) -> None:
    common = ['part', 'job', 'config.py', 'a folder', '--resume']
    tool = ['python', '-u', f'{repo}/tools/train.py', 'config.py', '--work-dir=a folder']
    ending = [*tool, '--launcher=slurm', '--resume', f'PYTHONPATH={repo}/tools/..']
    assert call('slurm_train.sh', *common) == [
        *('srun', '-p', 'part', '--job-name=job', '--gres=gpu:8', '--ntasks=8'),
        *('--ntasks-per-node=8', '--cpus-per-task=5', '--kill-on-bad-exit=1', *ending),
    ]
    env = dict(GPUS='4', GPUS_PER_NODE='2', CPUS_PER_TASK='3', SRUN_ARGS='--quotatype=auto -x n1')
    assert call('slurm_train.sh', *common, env=env) == [
        *('srun', '-p', 'part', '--job-name=job', '--gres=gpu:2', '--ntasks=4'),
        *('--ntasks-per-node=2', '--cpus-per-task=3', '--kill-on-bad-exit=1'),
        *('--quotatype=auto', '-x', 'n1', *ending),
    ]


@pytest.mark.parametrize(
    ('script', 'args', 'usage'),
    [
        ('dist_train.sh', ['config.py'], 'CONFIG GPUS [options of tools/train.py]'),
        ('dist_test.sh', ['c.py', 'w.pth'], 'CONFIG CHECKPOINT GPUS [options of tools/test.py]'),
        ('slurm_train.sh', ['p', 'j', 'c.py'], 'PARTITION JOB_NAME CONFIG WORK_DIR [options'),
    ],
)
def test_missing_arguments(script: str, args: list[str], usage: str, repo: Path) -> None:
    command = [repo / 'tools' / script, *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f'usage: {repo}/tools/{script} {usage}')
