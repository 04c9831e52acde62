"""The running statistics against averages of the batches' statistics."""

import pytest
import torch

from sn_openmmlab.layers.switch_norm import SwitchNorm

SHAPES = [(3, 4), (3, 4, 5), (3, 4, 2, 3), (3, 4, 2, 3, 2)]


def _batches(shape, count=4):
    return [torch.randn(shape, dtype=torch.float64) * (k + 1) + k for k in range(count)]


def _moments(batch):
    """Return mean and variance per channel; the variance divides by n, as in training."""
    pixels = batch.transpose(0, 1).flatten(1)
    return pixels.mean(1), pixels.var(1, unbiased=False)


@pytest.mark.parametrize('shape', SHAPES)
@pytest.mark.parametrize('momentum', [0.0, 0.1, 0.75, 1, 1.0])
def test_momentum_is_the_share_of_the_new_value(shape, momentum, randomized):
    layer = randomized(SwitchNorm(4, momentum=momentum, dtype=torch.float64))
    mean, var = layer.running_mean.clone(), layer.running_var.clone()

    for count, batch in enumerate(_batches(shape), 1):
        layer(batch)

        new_mean, new_var = _moments(batch)
        mean = (1 - momentum) * mean + momentum * new_mean
        var = (1 - momentum) * var + momentum * new_var
        torch.testing.assert_close(layer.running_mean, mean)
        torch.testing.assert_close(layer.running_var, var)
        assert layer.num_batches_tracked.item() == count


@pytest.mark.parametrize('shape', SHAPES)
def test_momentum_none_averages_all_batches(shape):
    layer = SwitchNorm(4, momentum=None, dtype=torch.float64)
    batches = _batches(shape)

    for count, batch in enumerate(batches, 1):
        layer(batch)

        seen = [_moments(earlier) for earlier in batches[:count]]
        means, variances = (torch.stack(tables) for tables in zip(*seen, strict=True))
        torch.testing.assert_close(layer.running_mean, means.mean(0))
        torch.testing.assert_close(layer.running_var, variances.mean(0))


def test_the_running_variance_lacks_the_factor_of_torchs_batch_norm():
    layer = SwitchNorm(4, momentum=1.0, dtype=torch.float64)
    torchs = torch.nn.BatchNorm2d(4, momentum=1.0, dtype=torch.float64)
    batch = torch.randn(3, 4, 2, 3, dtype=torch.float64)

    layer(batch)
    torchs(batch)

    n = 3 * 2 * 3
    torch.testing.assert_close(layer.running_mean, torchs.running_mean)
    torch.testing.assert_close(layer.running_var * n / (n - 1), torchs.running_var)


def test_with_correction_the_running_variance_is_the_one_that_normalized():
    layer = SwitchNorm(4, momentum=1.0, correction=1, dtype=torch.float64)
    batch = torch.randn(3, 4, 2, 3, dtype=torch.float64)

    layer(batch)

    mean_in, var_in = batch.mean((2, 3)), batch.var((2, 3), unbiased=True)
    expected = (var_in + mean_in.square()).mean(0) - mean_in.mean(0).square()
    torch.testing.assert_close(layer.running_var, expected)


@pytest.mark.parametrize('momentum', [0.1, 0.0, None])
def test_evaluation_uses_the_running_statistics_and_leaves_them(momentum, randomized, paper):
    layer = randomized(SwitchNorm(4, momentum=momentum, dtype=torch.float64)).eval()
    before = {name: buffer.clone() for name, buffer in layer.named_buffers()}
    x = torch.randn(3, 4, 2, 3, dtype=torch.float64)

    y = layer(x)

    torch.testing.assert_close(y, paper(layer, x))
    assert all(torch.equal(buffer, before[name]) for name, buffer in layer.named_buffers())


def test_in_evaluation_a_sample_does_not_see_the_others(randomized):
    layer = randomized(SwitchNorm(4, dtype=torch.float64)).eval()
    x = torch.randn(3, 4, 2, 3, dtype=torch.float64)

    torch.testing.assert_close(layer(x), torch.cat([layer(sample) for sample in x.split(1)]))


def test_the_running_statistics_do_not_hold_the_graph():
    layer = SwitchNorm(4)

    layer(torch.randn(3, 4, 2, 3, requires_grad=True))

    assert not any(buffer.requires_grad for buffer in layer.buffers())


def test_one_layer_used_twice_before_backward_keeps_its_gradients(paper, outcome):
    # The heads of one-stage detectors use one norm layer on several feature maps.
    layer = SwitchNorm(4, dtype=torch.float64)
    x = torch.randn(3, 4, 2, 3, dtype=torch.float64)
    grad = torch.randn_like(x)

    found = outcome(layer, x, grad, lambda layer, x: layer(x) + layer(2 * x.flip(0)))

    expected = outcome(
        layer, x, grad, lambda layer, x: paper(layer, x) + paper(layer, 2 * x.flip(0))
    )
    torch.testing.assert_close(found, expected)
    assert layer.num_batches_tracked.item() == 2


@pytest.mark.parametrize('name', ['running_mean', 'running_var', 'num_batches_tracked'])
@pytest.mark.parametrize('dtype', [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize('strided', [False, True])
def test_autograd_notices_that_a_step_changed_what_it_had_saved(strided, dtype, name):
    layer, factor = SwitchNorm(4, dtype=dtype), torch.ones((), requires_grad=True)
    if strided:
        table = getattr(layer, name)
        setattr(layer, name, torch.stack([table, table], -1)[..., 0])
    product = (factor * getattr(layer, name)).sum()

    layer(torch.randn(3, 4, 2, 3, dtype=dtype))

    with pytest.raises(RuntimeError, match='modified by an inplace operation'):
        product.backward()


@pytest.mark.parametrize('scopes', [('in', 'ln', 'bn'), ('bn',)], ids=str)
@pytest.mark.parametrize('name', ['running_mean', 'running_var'])
def test_one_running_table_alone_is_as_none(name, scopes):
    x = torch.randn(3, 4, 5, 5)
    layer = SwitchNorm(4, scopes=scopes)
    setattr(layer, name, None)
    batch_alone = SwitchNorm(4, scopes=scopes, track_running_stats=False)

    for training in (True, False):
        y = layer.train(training)(x)

        torch.testing.assert_close(y, batch_alone(x))
    assert layer.num_batches_tracked.item() == 0


@pytest.mark.parametrize('momentum', [0.1, None])
def test_without_a_number_of_batches_the_running_statistics_stay(momentum, randomized, paper):
    layer = randomized(SwitchNorm(4, momentum=momentum, dtype=torch.float64))
    layer.num_batches_tracked = None
    mean, var = layer.running_mean.clone(), layer.running_var.clone()
    x = torch.randn(3, 4, 2, 3, dtype=torch.float64)

    for training in (True, False):
        y = layer.train(training)(x)

        torch.testing.assert_close(y, paper(layer, x))
    assert torch.equal(layer.running_mean, mean) and torch.equal(layer.running_var, var)


def test_without_running_tables_evaluation_uses_the_batch_as_in_torch():
    x = torch.randn(3, 4, 5, 5)
    layer, norm = SwitchNorm(4, scopes=('bn',)), torch.nn.BatchNorm2d(4)
    for module in (layer, norm):
        module.running_mean = module.running_var = None
        module.eval()

    torch.testing.assert_close(layer(x), norm(x))


def test_float16_running_variance_that_overflows_is_infinite_as_in_torch():
    x = torch.tensor([-6e4, 6e4], dtype=torch.float16).reshape(2, 1, 1, 1)
    layer = SwitchNorm(1, dtype=torch.float16)
    for _ in range(3):
        layer(x)

    assert layer.running_var.isposinf().all()
    assert layer.running_mean.isfinite().all()
