"""Run the Triton kernels in the interpreter, and compile them, in processes of their own."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(find_spec('triton') is None, reason='Triton is not installed')

HERE = Path(__file__).parent
INTERPRET = {'TRITON_INTERPRET': '1'}
PASSES = ('moments_kernel', 'normalize_kernel', 'sums_kernel', 'gradient_kernel')
LAUNCHED = {
    'forward': ['moments_kernel', 'batch_kernel', 'mix_kernel', 'normalize_kernel'],
    'backward': [
        'sums_kernel',
        'channels_kernel',
        'positions_kernel',
        'controls_kernel',
        'gradient_kernel',
    ],
}
MOST_CALLS = 6


# A process each.
@pytest.mark.parametrize(
    'names', [['passes'], ['tables', 'launch'], ['op'], ['layer', 'self_check']], ids='-'.join
)
def test_the_kernels_compute_the_right_values_in_the_interpreter(names, repo, run_tool):
    options = ['-q', '-p', 'no:cacheprovider', '-c', repo / 'pyproject.toml', '--rootdir', repo]
    files = [HERE / f'interpreted_{name}.py' for name in names]

    run_tool('-m', 'pytest', *options, *files, env=INTERPRET)


def _compile(run_tool, tmp_path_factory, *arguments):
    """Return what `compile_kernels.py` found: each kernel, and what training steps launched."""
    cache = tmp_path_factory.mktemp('triton')
    env = {'TRITON_INTERPRET': '0', 'TRITON_CACHE_DIR': str(cache)}
    output = run_tool(HERE / 'compile_kernels.py', *arguments, env=env).stdout
    # torch's profiler prints lines of its own.
    lines = [json.loads(line) for line in output.splitlines() if line.startswith('{')]
    (counted,) = (line for line in lines if 'steps' in line)
    return [line for line in lines if 'kernel' in line], counted


@pytest.fixture(scope='module')
def found_for_h100(run_tool, tmp_path_factory):
    return _compile(run_tool, tmp_path_factory, '90', 'all')


@pytest.fixture(scope='module')
def compiled(found_for_h100):
    return found_for_h100[0]


def _assert_every_kernel(compiled):
    launched = [*LAUNCHED['forward'], *LAUNCHED['backward']]
    assert {found['kernel'] for found in compiled} == set(launched)
    assert all(found['size'] > 0 for found in compiled)


def test_every_kernel_compiles_for_an_h100(compiled):
    _assert_every_kernel(compiled)


def test_every_kernel_compiles_for_an_a100(run_tool, tmp_path_factory):
    compiled, _ = _compile(run_tool, tmp_path_factory, '80', 'default')

    _assert_every_kernel(compiled)


@pytest.mark.parametrize('direction', LAUNCHED)
def test_a_step_launches_few_kernels_and_calls_little_of_torch(found_for_h100, direction):
    first, second = found_for_h100[1]['steps']

    assert first[direction]['launched'] == second[direction]['launched'] == LAUNCHED[direction]
    # The second step starts what the first one compiled, past Triton's ordinary launch.
    assert first[direction]['ordinary'] == len(LAUNCHED[direction])
    assert second[direction]['ordinary'] == 0
    calls = second[direction]['calls']
    assert 0 < len(calls) <= MOST_CALLS
    assert set(calls) <= {'aten::empty_like', 'aten::new_empty'}


def test_threads_share_plans(found_for_h100):
    assert found_for_h100[1]['launched_by_threads'] == 12 * len(LAUNCHED['forward'])


@pytest.mark.parametrize('layout', ['contiguous', 'channels_last'])
@pytest.mark.parametrize('dtype', ['float32', 'float16', 'bfloat16'])
def test_passes_load_sixteen_bytes_at_a_time(compiled, dtype, layout):
    case = f'{dtype} {layout}'

    found = [k for k in compiled if k['case'] == case and k['kernel'] in PASSES]

    assert sorted(k['kernel'] for k in found) == sorted(PASSES)
    assert all('ld.global.v4.b32' in k['loads'] for k in found)


def test_short_rows_are_loaded_whole_units_at_a_time(compiled):
    found = {k['kernel']: k['loads'] for k in compiled if k['case'] == 'multiples'}

    assert 'ld.global.v4.b32' in found['normalize_kernel']
