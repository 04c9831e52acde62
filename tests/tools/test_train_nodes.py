"""Two machines train as one process with the whole batch, and the end of one process ends both."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import faulty_training
from tests.faulty_training import losses, training_config

# As docs/guides/several_gpus.md says, here without the time that Python takes to start and end.
LIMIT_TO_END = 60
KILLED_AFTER = 6
KILL = dict(type='SignalHook', signal='SIGKILL', iteration=KILLED_AFTER + 1, ranks=(1,))
SYNC = {'sync_bn': 'torch', 'env_cfg': dict(dist_cfg=dict(backend='gloo'))}

pytestmark = pytest.mark.skipif(os.name != 'posix', reason='needs POSIX signals')


class Node(NamedTuple):
    """A machine: what comes before a command on it, its address and its network interface."""

    prefix: list[str]
    address: str
    interface: str


@pytest.fixture
def ports() -> list[Node]:
    """Return two machines that are this one."""
    return [Node([], '127.0.0.1', 'lo')] * 2


@pytest.fixture
def namespaces() -> Iterator[list[Node]]:
    """Yield two machines that are network namespaces of this one, joined by a cable."""
    names = [f'sn{os.getpid()}n{i}' for i in range(2)]
    ends = [f'sn{os.getpid()}e{i}' for i in range(2)]

    def ip(*args: str) -> None:
        subprocess.run(['ip', *args], check=True, capture_output=True)

    try:
        for name in names:
            ip('netns', 'add', name)
        ip('link', 'add', ends[0], 'type', 'veth', 'peer', 'name', ends[1])
        for i, (name, end) in enumerate(zip(names, ends, strict=True)):
            ip('link', 'set', end, 'netns', name)
            ip('-n', name, 'address', 'add', f'10.99.0.{i + 1}/24', 'dev', end)
            for device in ('lo', end):
                ip('-n', name, 'link', 'set', device, 'up')
        yield [
            Node(['ip', 'netns', 'exec', name], f'10.99.0.{i + 1}', ends[i])
            for i, name in enumerate(names)
        ]
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f'no network namespaces here: {error}')
    finally:
        for name in names:
            subprocess.run(['ip', 'netns', 'delete', name], check=False, capture_output=True)


@pytest.mark.slow
@pytest.mark.parametrize('nodes', ['ports', 'namespaces'])
def test_two_nodes_until_one_process_is_killed(
    nodes: str,
    request: pytest.FixtureRequest,
    run_tool: Callable,
    tool_env: dict[str, str],
    tmp_path: Path,
) -> None:
    whole = training_config(tmp_path / 'whole', **SYNC)
    whole.dump(tmp_path / 'whole.py')
    run_tool(faulty_training.__file__, tmp_path / 'whole.py')

    machines: list[Node] = request.getfixturevalue(nodes)
    config = training_config(tmp_path / 'run', KILL, **SYNC, **{'train_dataloader.batch_size': 1})
    config.dump(tmp_path / 'run.py')
    with socket.create_server(('127.0.0.1', 0)) as server:
        port = server.getsockname()[1]
    processes = []
    for i, node in enumerate(machines):
        command = [
            *(*node.prefix, sys.executable, '-W', 'ignore', '-m', 'torch.distributed.run'),
            *('--nnodes', '2', '--nproc-per-node', '1', '--rdzv-backend', 'c10d', '--rdzv-id', 'x'),
            *(
                '--rdzv-endpoint',
                f'{machines[0].address}:{port}',
                '--rdzv-conf',
                f'is_host={1 - i}',
            ),
            *('--local-addr', node.address),
            *(faulty_training.__file__, tmp_path / 'run.py', '--launcher', 'pytorch'),
        ]
        with open(tmp_path / f'node{i}.log', 'w') as log:
            env = dict(tool_env, GLOO_SOCKET_IFNAME=node.interface)
            processes.append(
                subprocess.Popen(command, env=env, cwd=tmp_path, stdout=log, stderr=log)
            )
    try:
        codes = _end_of(processes, tmp_path / 'run')
    finally:
        for process in processes:
            process.kill()
    said = [(tmp_path / f'node{i}.log').read_text() for i in range(2)]
    assert 0 not in codes, said
    assert sum('Signal 9 (SIGKILL) received by PID' in text for text in said) == 1
    assert all('FAILED' in text for text in said)

    ranks = [losses(tmp_path / 'run', rank) for rank in (0, 1)]
    for of_ranks, of_whole in zip(
        zip(*ranks, strict=False), losses(tmp_path / 'whole'), strict=False
    ):
        mean = sum(float.fromhex(loss) for _, loss in of_ranks) / 2
        assert [number for number, _ in of_ranks] == [of_whole[0]] * 2
        assert mean == pytest.approx(float.fromhex(of_whole[1]), rel=1e-5)
    assert len(ranks[1]) == KILLED_AFTER


def _mean(*losses: str) -> float:
    return sum(map(float.fromhex, losses)) / len(losses)


def _end_of(processes: list[subprocess.Popen], work_dir: Path) -> list[int]:
    """Wait for the kill, then for the end of all; return the exit codes."""
    limit = time.monotonic() + 300
    while not all(_trained(work_dir, rank) >= KILLED_AFTER for rank in (0, 1)):
        assert time.monotonic() < limit
        time.sleep(0.1)
    limit = time.monotonic() + LIMIT_TO_END
    codes = [process.wait(limit - time.monotonic()) for process in processes]
    print(f'all ended after {LIMIT_TO_END - (limit - time.monotonic()):.1f} s')
    return codes


def _trained(work_dir: Path, rank: int) -> int:
    return len(losses(work_dir, rank)) if (work_dir / f'losses{rank}.txt').exists() else 0
