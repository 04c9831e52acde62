"""Half, single and double precision: in inputs, in parameters, and under autocast."""

import copy

import pytest
import torch
from torch import nn

from sn_openmmlab.layers.switch_norm import SwitchNorm

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
SCOPES = ('in', 'gn', 'ln', 'bn')


def _layer(randomized, **options):
    return randomized(SwitchNorm(4, scopes=SCOPES, num_groups=2, **options))


def _rounding(dtype):
    """Return the tolerance: with statistics in float32, only the rounding to `dtype` remains."""
    if dtype == torch.float64:
        return {'rtol': 1e-12, 'atol': 1e-12}
    # 1e-5: float32's own error, a few units of 2**-24 on numbers around 10.
    own = torch.finfo(dtype).eps / 2 if dtype != torch.float32 else 1e-5
    return {'rtol': own, 'atol': 1e-5}


def _doubled(tables):
    return {name: table.double() for name, table in tables.items()}


@pytest.mark.parametrize('training', [True, False], ids=['train', 'eval'])
@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('shape', [(5, 4), (2, 4, 5, 6)], ids=str)
def test_any_input_with_float32_parameters(shape, dtype, training, randomized, outcome, paper):
    layer = _layer(randomized).train(training)
    oracle = copy.deepcopy(layer).double()
    x, grad = (torch.randn(2, *shape) * 3 + 1).to(dtype)

    found = outcome(layer, x, grad)

    expected = outcome(oracle, x.double(), grad.double(), paper)
    types = {name: table.dtype for name, table in found.items()}
    parameters = ('weight', 'bias', 'mean_weight', 'var_weight')
    assert types == {'y': dtype, 'x': dtype, **dict.fromkeys(parameters, torch.float32)}
    for name in ('y', 'x'):
        torch.testing.assert_close(found[name].double(), expected[name], **_rounding(dtype))
    single = {name: found[name].double() for name in parameters}
    torch.testing.assert_close(
        single, {name: expected[name] for name in parameters}, rtol=1e-5, atol=1e-4
    )


@pytest.mark.parametrize('training', [True, False], ids=['train', 'eval'])
@pytest.mark.parametrize('dtype', DTYPES)
def test_a_module_of_any_type(dtype, training, randomized, outcome, paper):
    layer = _layer(randomized).to(dtype).train(training)
    oracle = copy.deepcopy(layer).double()
    x, grad = torch.randn(2, 2, 4, 5, 6).to(dtype)

    found = outcome(layer, x, grad)

    expected = outcome(oracle, x.double(), grad.double(), paper)
    assert {table.dtype for table in found.values()} == {dtype}
    torch.testing.assert_close(_doubled(found), expected, **_rounding(dtype))


@pytest.mark.parametrize('cast', ['half', 'bfloat16', 'double', 'float'])
def test_the_module_methods_cast_everything_but_the_count(cast):
    layer = getattr(SwitchNorm(4), cast)()

    dtype = getattr(torch, cast)
    tensors = [*layer.parameters(), layer.running_mean, layer.running_var]
    assert {tensor.dtype for tensor in tensors} == {dtype}
    assert layer.num_batches_tracked.dtype == torch.int64


@pytest.mark.parametrize('momentum', [0.1, None])
@pytest.mark.parametrize('dtype', DTYPES)
def test_running_statistics_of_any_input_are_kept_in_float32(dtype, momentum):
    layer = SwitchNorm(4, momentum=momentum)
    x = (torch.randn(8, 4, 16, 16) * 3 + 50).to(dtype)

    layer(x)

    share = 1.0 if momentum is None else momentum
    pixels = x.double().transpose(0, 1).flatten(1)
    mean, var = share * pixels.mean(1), (1 - share) + share * pixels.var(1, unbiased=False)
    assert layer.running_mean.dtype == layer.running_var.dtype == torch.float32
    torch.testing.assert_close(layer.running_mean.double(), mean, rtol=1e-6, atol=0)
    torch.testing.assert_close(layer.running_var.double(), var, rtol=1e-6, atol=0)


@pytest.mark.parametrize('momentum', [0.1, None])
@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
def test_running_statistics_of_a_half_precision_module(dtype, momentum):
    layer = SwitchNorm(4, momentum=momentum).to(dtype)
    x = (torch.randn(8, 4, 16, 16) * 3 + 50).to(dtype)

    layer(x)

    share = 1.0 if momentum is None else momentum
    mean = share * x.double().mean((0, 2, 3))
    # Rounded to the module's type before and after they are averaged.
    unit = torch.finfo(dtype).eps
    torch.testing.assert_close(layer.running_mean.double(), mean, rtol=unit, atol=0)


def test_under_autocast_the_layer_computes_what_it_does_outside(randomized):
    conv, layer = nn.Conv2d(3, 4, 3), _layer(randomized)
    outside = copy.deepcopy(layer)
    x = torch.randn(2, 3, 8, 8)

    with torch.autocast('cpu', torch.bfloat16):
        features = conv(x)
        y = layer(features)

    assert features.dtype == y.dtype == torch.bfloat16
    assert torch.equal(y, outside(features))
    assert layer.running_mean.dtype == layer.running_var.dtype == torch.float32
    assert torch.equal(layer.running_mean, outside.running_mean)
    assert torch.equal(layer.running_var, outside.running_var)


def test_under_autocast_a_float32_input_stays_float32(randomized):
    layer, x = _layer(randomized), torch.randn(2, 4, 8, 8)
    outside = copy.deepcopy(layer)

    with torch.autocast('cpu', torch.bfloat16):
        y = layer(x)

    assert y.dtype == torch.float32
    assert torch.equal(y, outside(x))


def test_under_autocast_the_parameters_get_float32_gradients(randomized):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), _layer(randomized))

    with torch.autocast('cpu', torch.bfloat16):
        loss = model(torch.randn(2, 3, 8, 8)).float().square().sum()
    loss.backward()

    for name, parameter in model.named_parameters():
        assert parameter.grad.dtype == torch.float32, name
        assert parameter.grad.isfinite().all() and parameter.grad.abs().sum() > 0, name
