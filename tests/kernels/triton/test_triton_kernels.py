"""Run the Triton kernels in the interpreter, and compile them, in processes of their own."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(find_spec('triton') is None, reason='Triton is not installed')

HERE = Path(__file__).parent
INTERPRET = {'TRITON_INTERPRET': '1'}
KERNELS = {
    'moments_kernel',
    'normalize_kernel',
    'sums_kernel',
    'gradient_kernel',
    '_merge_kernel',
    '_add_kernel',
    'mix_kernel',
    'channels_kernel',
    'positions_kernel',
    'controls_kernel',
}


@pytest.mark.parametrize('name', ['passes', 'tables', 'op', 'self_check'])
def test_the_kernels_compute_the_right_values_in_the_interpreter(name, repo, run_tool):
    options = ['-q', '-p', 'no:cacheprovider', '-c', repo / 'pyproject.toml', '--rootdir', repo]

    run_tool('-m', 'pytest', *options, HERE / f'interpreted_{name}.py', env=INTERPRET)


@pytest.fixture(scope='module')
def compiled(run_tool, tmp_path_factory):
    """Return the results of `compile_kernels.py`."""
    cache = tmp_path_factory.mktemp('triton')
    env = {'TRITON_INTERPRET': '0', 'TRITON_CACHE_DIR': str(cache)}
    output = run_tool(HERE / 'compile_kernels.py', env=env).stdout
    return [json.loads(line) for line in output.splitlines()]


def test_every_kernel_compiles_for_a_gpu(compiled):
    assert {found['kernel'] for found in compiled} == KERNELS
    assert all(found['size'] > 0 for found in compiled)


@pytest.mark.parametrize('layout', ['contiguous', 'channels_last'])
@pytest.mark.parametrize('dtype', ['float32', 'float16', 'bfloat16'])
def test_passes_load_sixteen_bytes_at_a_time(compiled, dtype, layout):
    case = f'{dtype} {layout}'
    passes = ['moments_kernel', 'normalize_kernel', 'sums_kernel', 'gradient_kernel']

    found = [k for k in compiled if k['case'] == case and k['kernel'] in passes]

    assert sorted(k['kernel'] for k in found) == sorted(passes)
    assert all('ld.global.v4.b32' in k['loads'] for k in found)


def test_short_rows_are_loaded_whole_units_at_a_time(compiled):
    found = {k['kernel']: k['loads'] for k in compiled if k['case'] == 'multiples'}

    assert 'ld.global.v4.b32' in found['normalize_kernel']
