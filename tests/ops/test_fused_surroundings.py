"""The fused op in its surroundings: inputs that depend on each other, later updates, modes."""

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.ops.backends import use_backend
from sn_openmmlab.ops.switch_norm import switch_norm


def _inputs(*names):
    torch.manual_seed(0)
    shapes = {'x': (2, 4, 5, 3), 'dy': (2, 4, 5, 3), 'control': (3,)}
    return [torch.randn(shapes[name], dtype=torch.float64, requires_grad=True) for name in names]


def _op(x, weight, control):
    options = {'scopes': ('in', 'ln', 'bn'), 'num_groups': 2, 'correction': 0, 'eps': 1e-5}
    return switch_norm(x, weight, weight, control, control, **options)[0]


@pytest.mark.parametrize('create_graph', [False, True])
def test_inputs_that_depend_on_each_other(create_graph):
    x, dy, control = _inputs('x', 'dy', 'control')

    def gradients(backend):
        with use_backend(backend):
            y = _op(x, x.mean((0, 2, 3)), control)
        return torch.autograd.grad((y * dy).sum(), [x, control], create_graph=create_graph)

    for found, expected in zip(gradients('aten'), gradients('plain'), strict=True):
        torch.testing.assert_close(found, expected)


def test_a_training_step_between_an_evaluation_and_its_backward_pass():
    x, dy = (tensor.detach() for tensor in _inputs('x', 'dy'))
    gradients = []
    for trains_between in (False, True):
        layer = SwitchNorm(4, dtype=torch.float64).eval()
        y = layer(x)
        if trains_between:
            layer.train()(x + 1)
        y.backward(dy)
        gradients.append(layer.weight.grad)

    torch.testing.assert_close(*gradients, rtol=0, atol=0)


@pytest.mark.parametrize('scale', [1e18, 1e20])
def test_large_finite_numbers_whose_variance_is_representable(scale):
    torch.manual_seed(0)
    x = scale * (1 + 1e-2 * torch.rand(2, 4, 20, 20))
    expected = SwitchNorm(4, dtype=torch.float64)(x.double())

    y = SwitchNorm(4)(x)

    torch.testing.assert_close(y.double(), expected, rtol=1e-3, atol=1e-3)


def test_tensors_without_data_and_tracing_modes():
    layer, x = SwitchNorm(4), torch.randn(2, 4, 9, 9)

    with FakeTensorMode():
        assert SwitchNorm(4)(torch.randn(2, 4, 9, 9)).shape == x.shape
    assert SwitchNorm(4, device='meta')(x.to('meta')).shape == x.shape
    traced = make_fx(layer.eval())(x)
    torch.testing.assert_close(traced(x + 1), layer(x + 1))


@pytest.mark.parametrize('mode', [FakeTensorMode, lambda: torch.device('meta')])
def test_a_mode_leaves_nothing_behind_for_later_calls(mode):
    layer, x = SwitchNorm(4), torch.randn(2, 4, 9, 9).bfloat16()
    expected = layer(x)

    with mode():
        SwitchNorm(4, device='cpu')(torch.randn(2, 4, 9, 9, device='cpu').bfloat16())

    torch.testing.assert_close(layer(x), expected, rtol=0, atol=0)
