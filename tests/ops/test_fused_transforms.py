"""Under torch.func and forward-mode differentiation the op computes by the plain expression."""

import pytest
import torch
from torch.autograd import forward_ad, gradcheck
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.ops.switch_norm import switch_norm

OPTIONS = {'scopes': ('in', 'ln', 'bn'), 'num_groups': 1, 'correction': 0, 'eps': 0.1}
SHAPE = (2, 3, 2, 2)


@pytest.fixture
def inputs(make_inputs):
    return [value.detach() for value in make_inputs(SHAPE, 3)]


def _op(*inputs):
    return switch_norm(*inputs, **OPTIONS)[0]


def _loss(*inputs):
    return _op(*inputs).square().sum()


def _by_autograd(function, inputs):
    leaves = [value.clone().requires_grad_() for value in inputs]
    return torch.autograd.grad(function(*leaves), leaves)


def test_grad(inputs):
    found = grad(_loss, argnums=tuple(range(5)))(*inputs)

    torch.testing.assert_close(found, _by_autograd(_loss, inputs))


def test_vjp(inputs):
    y, pull = vjp(_op, *inputs)
    torch.testing.assert_close(y, _op(*inputs))
    torch.testing.assert_close(pull(2 * y), _by_autograd(_loss, inputs))


def test_jacobians_by_both_modes_are_autograds(inputs):
    x, *others = inputs

    expected = torch.autograd.functional.jacobian(lambda x: _op(x, *others), x)

    torch.testing.assert_close(jacrev(_op)(x, *others), expected)
    torch.testing.assert_close(jacfwd(_op)(x, *others), expected)


def test_the_hessian_of_the_controls_is_autograds(inputs):
    *others, mean_weight, var_weight = inputs

    found = hessian(lambda control: _loss(*others, control, var_weight))(mean_weight)

    expected = torch.autograd.functional.hessian(
        lambda control: _loss(*others, control, var_weight), mean_weight
    )
    torch.testing.assert_close(found, expected)


def test_jvp_is_the_product_with_the_jacobian(inputs):
    tangents = [torch.randn_like(value) for value in inputs]

    y, derivative = jvp(_op, tuple(inputs), tuple(tangents))

    jacobians = torch.autograd.functional.jacobian(_op, tuple(inputs))
    expected = sum(
        torch.tensordot(jacobian, tangent, tangent.dim())
        for jacobian, tangent in zip(jacobians, tangents, strict=True)
    )
    torch.testing.assert_close(y, _op(*inputs))
    torch.testing.assert_close(derivative, expected)


def test_vmap_over_inputs_is_a_loop_over_them(inputs):
    batch = torch.randn(4, *SHAPE, dtype=torch.float64)

    found = vmap(_op, in_dims=(0, *[None] * 4))(batch, *inputs[1:])

    torch.testing.assert_close(found, torch.stack([_op(x, *inputs[1:]) for x in batch]))


def test_vmap_of_grad_gives_gradients_per_sample(inputs):
    x, *others = inputs
    per_sample = vmap(grad(lambda weight, x: _loss(x.unsqueeze(0), weight, *others[1:])), (None, 0))

    found = per_sample(others[0], x)

    expected = [_by_autograd(_loss, [sample.unsqueeze(0), *others])[1] for sample in x]
    torch.testing.assert_close(found, torch.stack(expected))


@pytest.mark.parametrize('training', [True, False], ids=['train', 'eval'])
def test_a_layer_without_running_statistics_goes_through_functional_call(training):
    layer = SwitchNorm(3, track_running_stats=False, dtype=torch.float64).train(training)
    parameters = {name: torch.randn_like(value) for name, value in layer.named_parameters()}
    x = torch.randn(SHAPE, dtype=torch.float64)

    def loss(parameters, x):
        return functional_call(layer, parameters, (x,)).square().sum()

    found = grad(loss)(parameters, x)

    leaves = {name: value.clone().requires_grad_() for name, value in parameters.items()}
    expected = torch.autograd.grad(loss(leaves, x), [*leaves.values()])
    torch.testing.assert_close([*found.values()], [*expected])


def test_a_layer_in_evaluation_goes_through_vmap_and_jvp():
    layer = SwitchNorm(3, dtype=torch.float64).eval()
    x, tangent = torch.randn(2, *SHAPE, dtype=torch.float64)

    y, derivative = jvp(layer, (x,), (tangent,))

    step = 1e-6
    expected = (layer(x + step * tangent) - layer(x - step * tangent)) / (2 * step)
    torch.testing.assert_close(y, layer(x))
    torch.testing.assert_close(derivative, expected, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(vmap(layer)(x.unsqueeze(1)), layer(x).unsqueeze(1))


def test_forward_mode_against_finite_differences(inputs):
    leaves = [value.requires_grad_() for value in inputs]

    assert gradcheck(
        _op, leaves, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True
    )


def test_forward_mode_by_dual_tensors_is_jvp(inputs):
    x, *others = inputs
    tangent = torch.randn_like(x)

    with forward_ad.dual_level():
        y = _op(forward_ad.make_dual(x, tangent), *others)
        found = forward_ad.unpack_dual(y).tangent

    torch.testing.assert_close(found, jvp(lambda x: _op(x, *others), (x,), (tangent,))[1])
