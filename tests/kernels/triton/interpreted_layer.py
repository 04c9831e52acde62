"""The layer on the 'triton' backend against the plain expression: its buffers, special cases."""

import copy

import pytest
import torch

from sn_openmmlab.kernels.contract import Mixture
from sn_openmmlab.kernels.triton import plans, stages
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.ops.backends import use_backend
from sn_openmmlab.ops.fused import FusedSwitchNorm, Settings
from sn_openmmlab.ops.switch_norm import switch_norm

OPTIONS = {'scopes': ('in', 'gn', 'bn'), 'num_groups': 2, 'correction': 1, 'eps': 1e-5}


@pytest.fixture
def x():
    return torch.randn(2, 4, 3, 5) * 2 + 5


@pytest.fixture
def dy():
    return torch.randn(2, 4, 3, 5)


def _vectors():
    vectors = [torch.randn(size) for size in (4, 4, 3, 3)]
    return [vector.requires_grad_() for vector in vectors]


def _step(backend, layer, x, dy):
    """Return the output and all gradients."""
    x = x.clone().requires_grad_()
    with use_backend(backend):
        y = layer(x)
        y.backward(dy)
    grads = {name: parameter.grad for name, parameter in layer.named_parameters()}
    return {'y': y.detach(), 'x': x.grad, **grads}


def _assert_the_same(layer, x, dy):
    """Take a step on both backends, with copies of `layer`, and return the one of Triton."""
    own, other = copy.deepcopy(layer), copy.deepcopy(layer)
    found, expected = _step('triton', own, x, dy), _step('plain', other, x, dy)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert (found[name] is None) == (value is None), name
        if value is not None:
            torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-4, msg=name)
    for name, buffer in other.named_buffers():
        torch.testing.assert_close(getattr(own, name), buffer)
    return own


@pytest.mark.parametrize(
    ('momentum', 'dtype'),
    [
        (0.3, torch.float16),
        (0.3, torch.bfloat16),
        (0.3, torch.float32),
        (0.3, torch.float64),
        (1, torch.float32),
        (None, torch.float16),
    ],
)
def test_running_statistics_of_every_type_move(x, dy, momentum, dtype):
    layer = SwitchNorm(4, momentum=momentum)
    layer.running_mean, layer.running_var = layer.running_mean.to(dtype), torch.ones(4).to(dtype)

    layer = _assert_the_same(layer, x, dy)
    layer = _assert_the_same(layer, x + 1, dy)

    assert layer.num_batches_tracked == 2 and layer.running_mean.dtype == dtype


def test_running_statistics_that_are_not_contiguous_move(x, dy):
    layer = SwitchNorm(4)
    layer.running_mean = torch.zeros(4, 2)[:, 0]

    _assert_the_same(layer, x, dy)


@pytest.mark.parametrize('scopes', [('bn',), ('in', 'bn'), ('in', 'ln')])
def test_evaluation(x, dy, scopes):
    layer = SwitchNorm(4, scopes=scopes).eval()
    if 'bn' in scopes:
        layer.running_mean = torch.randn(4)

    _assert_the_same(layer, x, dy)


@pytest.mark.parametrize('choice', [(0, 2), (2, 2)])
@pytest.mark.parametrize('trains', [True, False])
def test_sparse_layers(x, dy, choice, trains):
    layer = SwitchNorm(4)
    layer.choose(*map(torch.tensor, choice))

    _assert_the_same(layer.train(trains), x, dy)


@pytest.mark.parametrize(
    'frozen', [('weight', 'mean_weight'), ('bias', 'mean_weight', 'var_weight')]
)
def test_parameters_that_are_frozen(x, dy, frozen):
    layer = SwitchNorm(4)
    for name in frozen:
        getattr(layer, name).requires_grad_(False)

    _assert_the_same(layer, x, dy)


def test_an_input_that_needs_no_gradient(x, dy):
    vectors = _vectors()
    found = []
    for backend in ('triton', 'plain'):
        with use_backend(backend):
            y, _ = switch_norm(x, *vectors, **OPTIONS)
        found.append(torch.autograd.grad(y, vectors, dy))

    for own, expected in zip(*found, strict=True):
        torch.testing.assert_close(own, expected, rtol=1e-4, atol=1e-4)


def test_vectors_that_are_not_contiguous(x, dy):
    table = torch.randn(4, 2, requires_grad=True)
    controls = torch.randn(2, 3).unbind()
    found = []
    for backend in ('triton', 'plain'):
        with use_backend(backend):
            y, _ = switch_norm(x, *table.unbind(1), *controls, **OPTIONS)
        found.append((y, *torch.autograd.grad(y, table, dy)))

    for own, expected in zip(*found, strict=True):
        torch.testing.assert_close(own, expected, rtol=1e-4, atol=1e-4)


def test_a_training_step_between_an_evaluation_and_its_backward_pass(x, dy):
    gradients = []
    for trains_between in (False, True):
        layer = SwitchNorm(4).eval()
        with use_backend('triton'):
            y = layer(x)
            if trains_between:
                layer.train()(x + 1)
        y.backward(dy)
        gradients.append(layer.weight.grad)

    assert torch.equal(*gradients)


def test_gradients_that_are_differentiated_again(x, dy):
    vectors = _vectors()
    found = []
    for backend in ('triton', 'plain'):
        with use_backend(backend):
            y, _ = switch_norm(x, *vectors, **OPTIONS)
        first = torch.autograd.grad(y, vectors, dy, create_graph=True)
        # The output is linear in β, so no gradient depends on it.
        others = [vectors[0], *vectors[2:]]
        found.append(torch.autograd.grad(sum(t.square().sum() for t in first), others))

    for own, expected in zip(*found, strict=True):
        torch.testing.assert_close(own, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize('given', [False, True])
def test_the_stages_of_a_group_give_the_same(x, dy, given):
    vectors = [*_vectors()]
    moments = (torch.randn(4), torch.rand(4) + 0.5) if given else None
    settings = Settings(stages, Mixture(*OPTIONS.values()), None)
    inputs = [x.requires_grad_(), *vectors]
    with use_backend('triton'):
        y, _ = switch_norm(*inputs, **OPTIONS, batch_moments=moments)
    staged, *_ = FusedSwitchNorm.apply(*inputs, *(moments or (None, None)), settings)

    torch.testing.assert_close(staged, y, rtol=1e-6, atol=1e-6)
    found, expected = (torch.autograd.grad(out, inputs, dy) for out in (staged, y))
    for own, other in zip(found, expected, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-5, atol=1e-5)


def _new_plans(layer, x):
    """Return how many plans a step needs that there were not before."""
    caches = (plans.forward_plan, plans.backward_plan)
    before = [plan.cache_info().misses for plan in caches]
    _step('triton', layer, x, torch.ones_like(x))
    return [plan.cache_info().misses - misses for plan, misses in zip(caches, before, strict=True)]


def test_a_plan_is_for_inputs_of_one_shape_layout_type_and_alignment(x):
    layer, numbers = SwitchNorm(4), torch.randn(x.numel() + 4)
    plans.forward_plan.cache_clear()
    plans.backward_plan.cache_clear()

    assert _new_plans(layer, x) == [1, 1]
    assert _new_plans(SwitchNorm(4), x + 1) == [0, 0]
    assert _new_plans(layer, x.half()) == [1, 1]
    assert _new_plans(layer, x.contiguous(memory_format=torch.channels_last)) == [1, 1]
    assert _new_plans(copy.deepcopy(layer).half(), x) == [1, 1]
    assert _new_plans(layer, x[:1]) == [1, 1]
    layer.eval()
    with torch.no_grad(), use_backend('triton'):
        before = plans.forward_plan.cache_info().misses
        for start in (0, 4, 1, 2):
            layer(numbers[start : start + x.numel()].view(x.shape))
        assert plans.forward_plan.cache_info().misses == before + 2


def test_the_number_of_plans_is_bounded():
    for plan in (plans.forward_plan, plans.backward_plan):
        assert plan.cache_info().maxsize == plans.MOST_PLANS


class Elsewhere(torch.Tensor):
    """A tensor that says that it is on a second GPU."""

    def get_device(self):
        return 1


@pytest.mark.parametrize('in_stages', [False, True])
def test_a_layer_on_another_device_than_its_input_is_refused(in_stages, x):
    weight, bias, mean_weight, var_weight = _vectors()
    vectors = (weight, bias, mean_weight.as_subclass(Elsewhere), var_weight)

    with pytest.raises(RuntimeError, match='move both to one device'), use_backend('triton'):
        if in_stages:
            settings = Settings(stages, Mixture(**OPTIONS), None)
            FusedSwitchNorm.apply(x, *vectors, None, None, settings)
        else:
            switch_norm(x, *vectors, **OPTIONS)
