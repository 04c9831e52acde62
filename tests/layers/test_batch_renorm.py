"""BatchRenorm against the formulas of its paper, in numpy, and against torch's BatchNorm."""

import io

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from sn_openmmlab import BatchRenorm
from sn_openmmlab.errors import InputError
from sn_openmmlab.ops.backends import use_backend
from tests.backends import ON_CPU

SHAPES = [(5, 3), (4, 3, 5), (2, 3, 4, 5), (2, 3, 2, 3, 2), (1, 3, 4, 4)]
# As BatchNorm in 2 batches; then r_max is 1.5, 2, 2.5, 3 and d_max 2.5, 5.
SHORT = dict(begin=2, r_end=6, d_end=4)
SHORT_LIMITS = [(1, 0), (1, 0), (1, 0), (1.5, 2.5), (2, 5), (2.5, 5), (3, 5), (3, 5)]
# From the first batch on.
FULL = dict(begin=0, r_end=0, d_end=0)


class Reference:
    """Algorithm 1 of the paper on Batch Renormalization, and its gradients, in float64."""

    def __init__(self, layer):
        arrays = (layer.weight, layer.bias, layer.running_mean, layer.running_var)
        self.gamma, self.beta, self.mu, var = (
            t.detach().double().numpy().copy().reshape(-1, 1) for t in arrays
        )
        self.eps, self.alpha = layer.eps, layer.momentum
        self.sigma = np.sqrt(var + self.eps)

    def step(self, x, dy, r_max, d_max):
        """Return output and gradients of x, γ and β for (N, C, *) arrays, and move μ and σ."""
        shape = np.moveaxis(x, 1, 0).shape
        x, dy = (np.moveaxis(a, 1, 0).reshape(shape[0], -1) for a in (x, dy))
        m = x.shape[1]
        mu_b = x.sum(1, keepdims=True) / m
        sigma_b = np.sqrt(self.eps + ((x - mu_b) ** 2).sum(1, keepdims=True) / m)
        r = np.clip(sigma_b / self.sigma, 1 / r_max, r_max)
        d = np.clip((mu_b - self.mu) / self.sigma, -d_max, d_max)
        normal = (x - mu_b) / sigma_b * r + d
        d_normal = dy * self.gamma
        d_sigma = (d_normal * (x - mu_b) * -r / sigma_b**2).sum(1, keepdims=True)
        d_mu = (d_normal * -r / sigma_b).sum(1, keepdims=True)
        dx = d_normal * r / sigma_b + d_sigma * (x - mu_b) / (m * sigma_b) + d_mu / m
        y = self.gamma * normal + self.beta
        self.mu = self.mu + self.alpha * (mu_b - self.mu)
        self.sigma = self.sigma + self.alpha * (sigma_b - self.sigma)
        y, dx = (np.moveaxis(a.reshape(shape), 0, 1) for a in (y, dx))
        return y, dx, (dy * normal).sum(1), dy.sum(1)


def _check_step(layer, reference, x, r_max, d_max, **tolerance):
    dy = torch.randn_like(x)
    inputs = [x.requires_grad_(), layer.weight, layer.bias]
    y = layer(x)
    found = [y, *torch.autograd.grad(y, inputs, dy)]
    expected = reference.step(x.detach().numpy(), dy.numpy(), r_max, d_max)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.detach(), torch.from_numpy(theirs), **tolerance)
    sigma = (layer.running_var + layer.eps).sqrt()
    for ours, theirs in ((layer.running_mean, reference.mu), (sigma, reference.sigma)):
        torch.testing.assert_close(ours, torch.from_numpy(theirs).flatten(), **tolerance)


@pytest.mark.parametrize('backend', ON_CPU)
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_training_follows_the_formulas_batch_by_batch(shape, backend, randomized):
    layer = randomized(BatchRenorm(3, momentum=0.25, dtype=torch.float64, **SHORT))
    reference = Reference(layer)
    for step, limits in enumerate(SHORT_LIMITS):
        x = torch.randn(shape, dtype=torch.float64) * 3**step % 7 - 2
        with use_backend(backend):
            _check_step(layer, reference, x, *limits)
    assert layer.num_batches_tracked == len(SHORT_LIMITS)


@settings(deadline=None, max_examples=20)
@given(st.data())
def test_any_shape_scale_and_bounds_follow_the_formulas(randomized, data):
    torch.manual_seed(data.draw(st.integers(0, 2**16)))
    r_max, d_max = data.draw(st.floats(1, 4)), data.draw(st.floats(0, 6))
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    channels = data.draw(st.integers(1, 3))
    eps, momentum = data.draw(st.sampled_from([1e-5, 1e-3])), data.draw(st.floats(0, 1))
    layer = randomized(
        BatchRenorm(channels, eps, momentum, r_max=r_max, d_max=d_max, dtype=torch.float64, **FULL)
    )
    x = torch.randn(sizes[0], channels, *sizes[1:], dtype=torch.float64)
    x = x * data.draw(st.sampled_from([1e-3, 1.0, 1e3])) + data.draw(st.sampled_from([0.0, 5.0]))
    # The bounds are float32.
    _check_step(layer, Reference(layer), x, r_max, d_max, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ('batches', 'r_max', 'd_max'),
    [
        (0, 1, 0),
        (4999, 1, 0),
        (5000, 1, 0),
        (15_000, 1 + 2 * 10 / 35, 2.5),
        (25_000, 1 + 2 * 20 / 35, 5),
        (40_000, 3, 5),
        (10**7, 3, 5),
    ],
)
def test_the_schedule_is_by_default_the_papers(batches, r_max, d_max):
    layer = BatchRenorm(3)
    layer.num_batches_tracked.fill_(batches)
    assert layer.momentum == 0.01
    assert [float(limit) for limit in layer.limits()] == pytest.approx([r_max, d_max], rel=1e-6)


def test_a_schedule_may_jump():
    layer = BatchRenorm(3, r_max=2.0, d_max=1.0, begin=3, r_end=3, d_end=3)
    found = []
    for batches in (2, 3, 4):
        layer.num_batches_tracked.fill_(batches)
        found.append([float(limit) for limit in layer.limits()])
    assert found == [[1, 0], [2, 1], [2, 1]]


@pytest.mark.parametrize('options', [dict(r_max=1.0, d_max=0.0, **FULL), dict(begin=9)], ids=str)
def test_without_a_correction_training_is_batch_norms(options, randomized, outcome):
    layer = randomized(BatchRenorm(3, dtype=torch.float64, **options))
    norm = nn.BatchNorm2d(3, momentum=0.01, dtype=torch.float64)
    norm.load_state_dict(layer.state_dict())
    for _ in range(3):
        x, grad = torch.randn(2, 4, 3, 5, 5, dtype=torch.float64)
        torch.testing.assert_close(outcome(layer, x, grad), outcome(norm, x, grad))
    torch.testing.assert_close(layer.running_mean, norm.running_mean)


def test_without_gamma_and_beta_they_are_1_and_0():
    bare, full = (BatchRenorm(3, affine=affine, **SHORT) for affine in (False, True))
    for _ in range(5):
        x = torch.randn(2, 3, 4, 4) * 3 + 1
        torch.testing.assert_close(bare(x), full(x))
    assert bare.eval()(x).equal(full.eval()(x))


@pytest.mark.parametrize('dtype', [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ('kind', 'shape'),
    [(nn.BatchNorm1d, (4, 3)), (nn.BatchNorm2d, (2, 3, 4, 4)), (nn.BatchNorm3d, (2, 3, 2, 2, 2))],
)
def test_evaluation_is_batch_norms_with_the_same_weights(kind, shape, dtype, randomized):
    norm = randomized(kind(3, eps=1e-3)).to(torch.float64 if dtype == torch.float64 else None)
    layer = BatchRenorm(3, eps=1e-3).to(norm.weight.dtype)
    assert list(layer.state_dict()) == list(norm.state_dict())
    layer.load_state_dict(norm.state_dict())
    x = torch.randn(shape).to(dtype)
    assert layer.eval()(x).equal(norm.eval()(x))
    assert layer.num_batches_tracked == norm.num_batches_tracked


def test_what_it_trained_loads_into_batch_norm(randomized):
    layer = randomized(BatchRenorm(3, momentum=0.5, **FULL))
    for _ in range(3):
        layer(torch.randn(2, 3, 4, 4))
    norm = nn.BatchNorm2d(3)
    norm.load_state_dict(layer.state_dict())
    x = torch.randn(2, 3, 4, 4)
    assert norm.eval()(x).equal(layer.eval()(x))


def test_gradients_of_any_order_where_the_bounds_hold_r_and_d(randomized):
    """There r and d do not depend on the input, so that numeric gradients are comparable."""
    layer = randomized(BatchRenorm(3, momentum=0.0, dtype=torch.float64, **FULL))
    layer.running_mean.copy_(torch.tensor([300.0, -300.0, 3e4]))
    layer.running_var.copy_(torch.tensor([1e-3, 1e-3, 1e5]))

    def run(x, weight, bias):
        return torch.func.functional_call(layer, {'weight': weight, 'bias': bias}, (x,))

    shapes = ((2, 3, 2, 2), (3,), (3,))
    inputs = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    assert torch.autograd.gradcheck(run, inputs)
    assert torch.autograd.gradgradcheck(run, inputs)


@pytest.mark.parametrize('momentum', [0.1, None])
def test_a_resumed_training_is_bit_for_bit_the_same(momentum, randomized):
    whole = randomized(BatchRenorm(3, momentum=momentum, **SHORT))
    resumed = BatchRenorm(3, momentum=momentum, **SHORT)
    batches = torch.randn(8, 2, 3, 4, 4)
    file = io.BytesIO()
    for batch in batches[:4]:
        whole(batch)
    torch.save(whole.state_dict(), file)
    file.seek(0)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    for batch in batches[4:]:
        assert resumed(batch).equal(whole(batch))
    for name, value in whole.state_dict().items():
        assert resumed.state_dict()[name].equal(value), name


def test_without_a_momentum_the_averages_are_those_of_all_batches():
    layer = BatchRenorm(3, momentum=None, dtype=torch.float64, **SHORT)
    batches = torch.randn(5, 4, 3, 6, dtype=torch.float64)
    for batch in batches:
        layer(batch)
    var, mean = torch.var_mean(batches, (1, 3), correction=0)
    torch.testing.assert_close(layer.running_mean, mean.mean(0))
    sigma = (layer.running_var + layer.eps).sqrt()
    torch.testing.assert_close(sigma, (var + layer.eps).sqrt().mean(0))


@pytest.mark.parametrize('training', [True, False], ids=['train', 'eval'])
@pytest.mark.parametrize('shape', [(0, 3), (0, 3, 4, 4), (2, 3, 0, 4)], ids=str)
def test_without_samples_the_output_is_empty_and_nothing_moves(shape, training, randomized):
    layer = randomized(BatchRenorm(3, **FULL)).train(training)
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    x = torch.randn(shape, requires_grad=True)
    y = layer(x)
    y.sum().backward()
    assert y.shape == x.grad.shape == shape
    assert all(p.grad.equal(torch.zeros(3)) for p in layer.parameters())
    assert all(value.equal(before[name]) for name, value in layer.state_dict().items())


@pytest.mark.parametrize('shape', [(1, 3), (1, 3, 1, 1)], ids=str)
def test_one_value_per_channel_gives_the_shift_alone(shape, randomized):
    layer = randomized(BatchRenorm(3, dtype=torch.float64, **FULL))
    x = torch.randn(shape, dtype=torch.float64)
    d = (x.flatten() - layer.running_mean) / (layer.running_var + layer.eps).sqrt()
    expected = layer.weight * d.clamp(-5, 5) + layer.bias
    torch.testing.assert_close(layer(x).flatten(), expected)


def test_equal_values_leave_no_negative_variance():
    layer = BatchRenorm(3, momentum=1.0, **FULL)
    for value in (1e3, 0.1, -7.7):
        layer(torch.full((2, 3, 4, 4), value))
        assert (layer.running_var >= 0).all()
        assert (layer.running_var < 1e-9).all()


@pytest.mark.parametrize('half_layer', [False, True])
@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
def test_half_precision_has_the_statistics_of_float32(dtype, half_layer, randomized):
    layer = randomized(BatchRenorm(3, momentum=1.0, **FULL))
    layer = layer.to(dtype) if half_layer else layer
    single = BatchRenorm(3, momentum=1.0, **FULL)
    single.load_state_dict(layer.state_dict())
    # The squares overflow in float16.
    x = (torch.randn(4, 3, 8, 8) * 1000).to(dtype)
    y, expected = layer(x), single(x.float())
    assert y.dtype == dtype
    torch.testing.assert_close(y, expected.to(dtype))
    if not half_layer:
        torch.testing.assert_close(layer.state_dict(), single.state_dict(), rtol=1e-5, atol=1e-3)


def test_autocast_changes_nothing(randomized):
    layer, other = (randomized(BatchRenorm(3, **FULL)) for _ in range(2))
    other.load_state_dict(layer.state_dict())
    x = torch.randn(2, 3, 4, 4)
    with torch.autocast('cpu', torch.bfloat16):
        y = layer(x)
    assert y.equal(other(x))
    torch.testing.assert_close(layer.state_dict(), other.state_dict(), rtol=0, atol=0)


def test_the_memory_format_stays():
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    for training in (True, False):
        y = BatchRenorm(3).train(training)(x)
        assert y.is_contiguous(memory_format=torch.channels_last)


def test_fx_records_one_call(randomized):
    model = nn.Sequential(nn.Conv2d(3, 3, 1), randomized(BatchRenorm(3)), nn.ReLU()).eval()
    traced = torch.fx.symbolic_trace(model)
    assert [node.op for node in traced.graph.nodes].count('call_module') == 3
    x = torch.randn(2, 3, 4, 4)
    assert traced(x).equal(model(x))


@pytest.mark.parametrize(
    ('options', 'error', 'said'),
    [
        (dict(num_features=0), ValueError, 'num_features is 0'),
        (dict(r_max=0.5), ValueError, 'r_max is 0.5, but must be finite and at least 1'),
        (dict(d_max=-1), ValueError, 'd_max is -1, but must be finite and at least 0'),
        (dict(r_max='3'), TypeError, "r_max must be a number, not '3'"),
        (dict(d_max=float('inf')), ValueError, 'd_max is inf'),
        (dict(begin=-1), ValueError, 'begin is -1, but must be at least 0'),
        (dict(begin=1.5), TypeError, 'begin must be a whole number of batches, not 1.5'),
        (dict(r_end=100), ValueError, 'r_end is 100, but must be at least begin'),
        (dict(d_end=True), TypeError, 'd_end must be a whole number'),
        (dict(momentum=2), ValueError, 'momentum is 2'),
        (dict(eps=-1), ValueError, 'eps is -1'),
        (dict(affine='no'), TypeError, 'affine must be True or False'),
    ],
)
def test_a_wrong_argument_is_one_sentence(options, error, said):
    with pytest.raises(error, match=said):
        BatchRenorm(**{'num_features': 3, **options})


@pytest.mark.parametrize(
    ('x', 'said'),
    [
        (torch.zeros(3), 'BatchRenorm takes inputs of 2 to 5 dimensions'),
        (torch.zeros(2, 3, dtype=torch.int64), 'BatchRenorm takes floating-point inputs'),
        (torch.zeros(2, 4), 'BatchRenorm was made for 3 channels'),
    ],
)
def test_a_wrong_input_is_one_sentence(x, said):
    with pytest.raises(InputError, match=said):
        BatchRenorm(3)(x)


def test_its_text_shows_the_schedule():
    assert repr(BatchRenorm(3, begin=1, r_end=2, d_end=3)) == (
        'BatchRenorm(3, eps=1e-05, momentum=0.01, affine=True, r_max=3.0, d_max=5.0, begin=1, '
        'r_end=2, d_end=3)'
    )


@pytest.mark.parametrize('training', [True, False])
def test_shapes_are_inferred_without_values(training):
    layer = BatchRenorm(4, device='meta').train(training)
    x = torch.empty(2, 4, 3, 3, dtype=torch.half, device='meta')
    assert (layer(x).shape, layer(x).dtype) == (x.shape, x.dtype)
