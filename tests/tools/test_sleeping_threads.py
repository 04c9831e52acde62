"""Every tool has OpenMP's threads sleep, before torch is there, unless the user says otherwise."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from _sleeping_threads import OURS, SETTINGS

TOOLS = Path(__file__).resolve().parents[2] / 'tools'
# tools/setup_env.py runs without torch.
STARTED = sorted({p.name for p in TOOLS.glob('[!_]*.py')} - {'setup_env.py'})

# In place of torch: says what torch would have found, and ends the process.
TORCH = f"""
import json, os
found = {{name: os.environ[name] for name in {SETTINGS} if name in os.environ}}
print(json.dumps(found), flush=True)
os._exit(0)
"""


@pytest.fixture
def bare_env(tool_env: dict[str, str]) -> dict[str, str]:
    """The environment of the tools of a user who has set nothing about OpenMP's threads."""
    return {name: value for name, value in tool_env.items() if name not in SETTINGS}


@pytest.fixture
def torch_finds(bare_env: dict[str, str], tmp_path: Path) -> Callable[..., dict[str, str]]:
    """A function (tool, user's settings) -> the settings that are there when it imports torch."""
    (tmp_path / 'torch').mkdir()
    (tmp_path / 'torch/__init__.py').write_text(TORCH)
    path = os.pathsep.join([str(tmp_path), bare_env['PYTHONPATH']])

    def start(tool: str, users: Mapping[str, str]) -> dict[str, str]:
        env = {**bare_env, **users, 'PYTHONPATH': path}
        command = [sys.executable, TOOLS / tool, '--help']
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
        return json.loads(done.stdout)

    return start


@pytest.mark.parametrize('tool', STARTED)
def test_threads_sleep_from_the_start_of_torch(tool: str, torch_finds: Callable) -> None:
    assert torch_finds(tool, {}) == OURS


@pytest.mark.parametrize(
    'users',
    [{'OMP_WAIT_POLICY': 'ACTIVE'}, {'GOMP_SPINCOUNT': '300000'}, {'KMP_BLOCKTIME': '200'}],
)
def test_what_the_user_has_set_stays_alone(users: dict[str, str], torch_finds: Callable) -> None:
    assert torch_finds('make_demo_data.py', users) == users


def _spin_counts(command: list, env: dict[str, str]) -> list[int]:
    """What GNU's OpenMP says of itself, by process."""
    done = subprocess.run(
        [sys.executable, *command],
        env={**env, 'OMP_DISPLAY_ENV': 'VERBOSE'},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    counts = re.findall(r"GOMP_SPINCOUNT = '(\d+)'", done.stderr)
    if not counts:
        pytest.skip("this torch comes without GNU's OpenMP library")
    return [int(count) for count in counts]


def test_openmp_itself_spins_without_it_and_does_not_with_it(bare_env: dict[str, str]) -> None:
    assert _spin_counts(['-c', 'import torch'], bare_env)[0] > 0
    assert set(_spin_counts([TOOLS / 'make_demo_data.py', '--help'], bare_env)) == {0}


def test_workers_of_torchrun_have_it(bare_env: dict[str, str]) -> None:
    torchrun = ('-m', 'torch.distributed.run', '--standalone', '--nproc_per_node=2')
    counts = _spin_counts([*torchrun, TOOLS / 'train.py', '--help'], bare_env)
    # torchrun's own process, which computes nothing, is not ours.
    assert counts.count(0) == 2


def test_importing_the_package_changes_nothing(bare_env: dict[str, str]) -> None:
    code = f'import os, sn_openmmlab; assert not set(os.environ) & set({SETTINGS})'
    subprocess.run([sys.executable, '-c', code], env=bare_env, check=True, timeout=300)


def test_tests_and_what_they_start_have_it(tool_env: dict[str, str]) -> None:
    assert set(tool_env) & set(SETTINGS)
