"""torch.compile takes the layer in one graph and gives what eager mode gives."""

import copy

import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounter

from sn_openmmlab.layers.switch_norm import SwitchNorm

SCOPES = ('in', 'gn', 'ln', 'bn')
OPTIONS = [{}, {'momentum': None}, {'affine': False, 'correction': 1}, {'scopes': ('gn', 'ln')}]


@pytest.fixture(autouse=True)
def fresh_compiler(tmp_path, monkeypatch):
    """Clear compiled code before and after each test."""
    monkeypatch.setenv('TORCHINDUCTOR_CACHE_DIR', str(tmp_path / 'inductor'))
    monkeypatch.setenv('TRITON_CACHE_DIR', str(tmp_path / 'triton'))
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def _layer(randomized, **options):
    options = {'scopes': SCOPES, 'num_groups': 2, 'dtype': torch.float64, **options}
    return randomized(SwitchNorm(4, **options))


def _compile(layer, backend, **options):
    return torch.compile(layer, backend=backend, fullgraph=True, **options)


@pytest.mark.parametrize('training', [True, False], ids=['train', 'eval'])
@pytest.mark.parametrize('options', OPTIONS, ids=str)
@pytest.mark.parametrize('backend', ['eager', 'aot_eager'])
def test_values_gradients_and_running_statistics(backend, options, training, randomized, outcome):
    layer = _layer(randomized, **options).train(training)
    twin = copy.deepcopy(layer)
    compiled = _compile(twin, backend)
    x, grad = torch.randn(2, 2, 4, 5, 3, dtype=torch.float64)

    for _ in range(2):
        found = outcome(twin, x, grad, lambda _, x: compiled(x))
        torch.testing.assert_close(found, outcome(layer, x, grad))

    torch.testing.assert_close(twin.state_dict(), layer.state_dict())


@pytest.mark.parametrize('shape', [(3, 4), (2, 4, 7), (2, 4, 2, 3, 2), (0, 4, 3, 3)], ids=str)
def test_every_number_of_dimensions(shape, randomized):
    layer = _layer(randomized)
    twin = copy.deepcopy(layer)
    x = torch.randn(shape, dtype=torch.float64)

    torch.testing.assert_close(_compile(twin, 'aot_eager')(x), layer(x))
    torch.testing.assert_close(twin.state_dict(), layer.state_dict())


@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16])
def test_the_output_keeps_type_and_memory_format(dtype, randomized):
    layer = _layer(randomized, dtype=torch.float32).eval()
    x = torch.randn(2, 4, 6, 6).to(dtype).contiguous(memory_format=torch.channels_last)

    y = _compile(layer, 'aot_eager')(x)

    assert y.dtype == dtype and y.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(y, layer(x))


def test_dynamic_shapes_are_compiled_once(randomized):
    layer = _layer(randomized)
    twin, counter = copy.deepcopy(layer), CompileCounter()
    compiled = _compile(twin, counter, dynamic=True)

    for shape in [(2, 4, 5, 3), (3, 4, 7, 6), (5, 4, 2, 9)]:
        x = torch.randn(shape, dtype=torch.float64)
        torch.testing.assert_close(compiled(x), layer(x))

    assert counter.frame_count == 1
    torch.testing.assert_close(twin.state_dict(), layer.state_dict())


def test_a_block_under_autocast(randomized):
    block = nn.Sequential(
        nn.Conv2d(3, 4, 3), _layer(randomized, dtype=torch.float32), nn.ReLU(inplace=True)
    )
    compiled = _compile(copy.deepcopy(block), 'aot_eager')
    x = torch.randn(2, 3, 8, 8)

    with torch.autocast('cpu', torch.bfloat16):
        found, expected = compiled(x), block(x)
    found.float().sum().backward()

    assert found.dtype == expected.dtype == torch.bfloat16
    torch.testing.assert_close(found, expected)


def test_inductor(randomized, outcome):
    layer = _layer(randomized, dtype=torch.float32)
    twin = copy.deepcopy(layer)
    compiled = _compile(twin, 'inductor')
    x, grad = torch.randn(2, 2, 4, 5, 3)

    found = outcome(twin, x, grad, lambda _, x: compiled(x))

    torch.testing.assert_close(found, outcome(layer, x, grad), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(twin.state_dict(), layer.state_dict())
