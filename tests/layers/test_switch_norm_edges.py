"""Inputs on which normalizations fail: the layer stays finite and right."""

import copy

import pytest
import torch

from sn_openmmlab.layers.switch_norm import SwitchNorm

ALL = ('in', 'gn', 'ln', 'bn')
EDGES = [
    *[(2, 4, *[1] * count) for count in range(4)],  # one pixel per map
    *[(1, 4, *[3] * count) for count in range(1, 4)],  # one sample
    *[(1, 4, *[1] * count) for count in range(4)],  # one sample of one pixel
]


def _layer(randomized, channels=4, dtype=torch.float32, **options):
    options = {'scopes': ALL, 'num_groups': 2, **options}
    return randomized(SwitchNorm(channels, dtype=dtype, **options))


def _double(layer):
    return copy.deepcopy(layer).double()


@pytest.mark.parametrize('training', [True, False], ids=['train', 'eval'])
@pytest.mark.parametrize('correction', [0, 1])
@pytest.mark.parametrize('shape', EDGES, ids=str)
def test_single_pixels_and_single_samples_follow_the_formulas(
    shape, correction, training, randomized, outcome, paper
):
    layer = _layer(randomized, dtype=torch.float64, correction=correction).train(training)
    x, grad = torch.randn(2, *shape, dtype=torch.float64)

    expected = outcome(layer, x, grad, paper)

    assert all(table.isfinite().all() for table in expected.values())
    torch.testing.assert_close(outcome(layer, x, grad), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('correction', [0, 1])
def test_one_sample_of_one_pixel_is_averaged_with_variance_zero(correction, randomized):
    layer = _layer(randomized, correction=correction)
    mean, var = layer.running_mean.clone(), layer.running_var.clone()
    x = torch.randn(1, 4, 1, 1)

    layer(x)

    torch.testing.assert_close(layer.running_mean, 0.9 * mean + 0.1 * x.flatten())
    torch.testing.assert_close(layer.running_var, 0.9 * var)


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize('value', [0.0, 0.1, -3.7, 1234.567, 12345.67, 60000.0])
@pytest.mark.parametrize('shape', [(2, 6), (3, 6, 7), (2, 6, 13, 17), (1, 6, 3, 5, 7)], ids=str)
def test_a_constant_input_gives_beta(shape, value, dtype, randomized, outcome):
    layer = _layer(randomized, 6)
    x = torch.full(shape, value, dtype=dtype)

    found = outcome(layer, x, torch.randn(shape).to(dtype))

    beta = layer.bias.detach().to(dtype).reshape(1, 6, *[1] * (len(shape) - 2)).expand(shape)
    # Every mean is the constant itself, so only the rounding of β remains.
    torch.testing.assert_close(found['y'], beta, rtol=torch.finfo(dtype).eps, atol=1e-6)
    assert all(table.isfinite().all() for table in found.values())


@pytest.mark.parametrize('training', [True, False], ids=['train', 'eval'])
@pytest.mark.parametrize('offset', [1e4, -1e4])
@pytest.mark.parametrize('scopes', [('in', 'ln', 'bn'), ('in',), ('bn',), ALL], ids='-'.join)
def test_an_offset_of_ten_thousand_in_float32(scopes, offset, training, randomized, outcome):
    layer = _layer(randomized, scopes=scopes).train(training)
    with torch.no_grad():
        if layer.running_mean is not None:
            layer.running_mean.add_(offset)
    x, grad = torch.randn(3, 4, 9, 11) + offset, torch.randn(3, 4, 9, 11)
    exact = _double(layer)

    expected = outcome(exact, x.double(), grad.double())
    found = outcome(layer, x, grad)

    # Floats near 1e4 are 2**-10 apart. Rounding moves the mixed mean by half of that, and also each
    # of the two means it comes from, of the scope and of the instance; x - mean is exact. Divided
    # by σ and times γ that is the error of the output. The relative error of σ is smaller.
    spacing = 2**-10
    scale = _scale(exact, x.double())
    assert (_error(found, expected, 'y') <= 1.5 * spacing * (scale + expected['y'].abs())).all()
    # The gradients add up dL/dμ of each sample and channel times deviations with that error. The
    # factor 4 covers products of up to four of them. The gradient of β does not use the input.
    by_mean = (grad.sum((2, 3), keepdim=True) * scale).abs().sum()
    for name in ('weight', 'mean_weight', 'var_weight'):
        bound = 4 * spacing * (by_mean + expected[name].abs())
        assert (_error(found, expected, name) <= bound).all(), name
    torch.testing.assert_close(found['bias'].double(), expected['bias'], rtol=1e-5, atol=1e-5)


def _error(found, expected, name):
    return (found[name] - expected[name]).abs()


def _scale(layer, x):
    """Return |γ| / σ for each sample and channel: how much the layer scales the deviations."""
    return layer(x).detach().std((2, 3), keepdim=True) / x.std((2, 3), keepdim=True)


@pytest.mark.parametrize('training', [True, False], ids=['train', 'eval'])
@pytest.mark.parametrize('low', [-6.5e4, 5.5e4])
def test_float16_inputs_near_sixty_thousand(low, training, randomized, outcome, paper):
    layer = _layer(randomized).train(training)
    x = (torch.rand(2, 4, 5, 5) * (6.5e4 - low) + low).half()
    assert x.isfinite().all() and x.abs().max() > 6e4
    grad = torch.randn(2, 4, 5, 5).half()

    expected = outcome(_double(layer), x.double(), grad.double(), paper)
    found = outcome(layer, x, grad)

    # With statistics in float32 two errors remain: rounding the output to float16, and rounding the
    # means to float32, 2**-9 near 6e4, over a standard deviation of at least 1e3.
    bound = {'rtol': torch.finfo(torch.float16).eps / 2, 'atol': 1e-5}
    torch.testing.assert_close(found['y'].double(), expected['y'], **bound)
    for name in ('bias', 'weight', 'mean_weight', 'var_weight'):
        torch.testing.assert_close(found[name].double(), expected[name], rtol=1e-4, atol=1e-4)


def test_float16_inputs_near_sixty_thousand_give_finite_running_statistics():
    layer = SwitchNorm(4, momentum=1.0)
    x = (torch.rand(2, 4, 5, 5) * 1.3e5 - 6.5e4).half()

    layer(x)

    pixels = x.double().transpose(0, 1).flatten(1)
    torch.testing.assert_close(layer.running_mean.double(), pixels.mean(1), rtol=1e-5, atol=0)
    var = pixels.var(1, unbiased=False)
    torch.testing.assert_close(layer.running_var.double(), var, rtol=1e-5, atol=0)


@pytest.mark.parametrize('magnitude', [1e-30, 1e-6, 1e6, 1e15])
def test_tiny_and_huge_inputs_in_float32(magnitude, randomized, paper):
    layer = _layer(randomized, scopes=('in', 'ln', 'bn'))
    x = torch.randn(2, 4, 5, 5) * magnitude

    found = layer(x)

    expected = paper(_double(layer), x.double())
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
