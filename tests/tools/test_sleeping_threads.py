"""Every tool has OpenMP's threads sleep, before torch is there, unless the user says otherwise."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from _sleeping_threads import OURS, SETTINGS

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / 'tools'
STUDIES = sorted(f'studies.{path.stem}' for path in (ROOT / 'studies').glob('[!_]*.py'))
# These run without torch, and so does studies.make_demo_data.
BARE = ('setup_env.py', 'declare_torchvision_ops.py')
STARTED = [
    *((path,) for path in sorted(TOOLS.glob('[!_]*.py')) if path.name not in BARE),
    *(('-m', module) for module in STUDIES if module != 'studies.make_demo_data'),
]
BENCHMARK = ('-m', 'studies.benchmark_op')

# In place of torch: says what torch would have found, and ends the process.
TORCH = f"""
import json, os
found = {{name: os.environ[name] for name in {SETTINGS} if name in os.environ}}
print(json.dumps(found), flush=True)
os._exit(0)
"""


@pytest.fixture
def bare_env(tool_env: dict[str, str]) -> dict[str, str]:
    """Return the tools' environment without any setting of OpenMP's threads."""
    return {name: value for name, value in tool_env.items() if name not in SETTINGS}


@pytest.fixture
def torch_finds(bare_env: dict[str, str], tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Return a function (command, user's settings) -> the settings that it imports torch with."""
    (tmp_path / 'torch').mkdir()
    (tmp_path / 'torch/__init__.py').write_text(TORCH)
    path = os.pathsep.join([str(tmp_path), bare_env['PYTHONPATH']])

    def start(command: Sequence[object], users: Mapping[str, str]) -> dict[str, str]:
        env = {**bare_env, **users, 'PYTHONPATH': path}
        command = [sys.executable, *command, '--help']
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
        return json.loads(done.stdout)

    return start


@pytest.mark.parametrize('command', STARTED, ids=lambda command: str(command[-1]))
def test_threads_sleep_from_the_start_of_torch(command: tuple, torch_finds: Callable) -> None:
    assert torch_finds(command, {}) == OURS


@pytest.mark.parametrize(
    'users',
    [{'OMP_WAIT_POLICY': 'ACTIVE'}, {'GOMP_SPINCOUNT': '300000'}, {'KMP_BLOCKTIME': '200'}],
)
def test_what_the_user_has_set_stays_alone(users: dict[str, str], torch_finds: Callable) -> None:
    assert torch_finds(BENCHMARK, users) == users


def _spin_counts(command: list, env: dict[str, str]) -> list[int]:
    """Return the settings that GNU's OpenMP displays, by process."""
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
    assert set(_spin_counts([*BENCHMARK, '--help'], bare_env)) == {0}


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
