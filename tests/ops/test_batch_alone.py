"""The op on given batch moments alone, in every type and layout, against the reference."""

import pytest
import torch

from sn_openmmlab.ops.batch_alone import batch_alone
from sn_openmmlab.ops.switch_norm import switch_norm
from tests import reference
from tests.layouts import LAYOUTS

OPTIONS = {'scopes': ('bn',), 'num_groups': 1, 'correction': 0, 'eps': 1e-5}
SHAPES = [(3, 4), (2, 4, 5), (2, 4, 3, 5), (2, 4, 3, 2, 2)]


def _arguments(shape, dtype, parameters, offset=0.0):
    x = (torch.randn(shape) + offset).to(dtype)
    affine = torch.randn(2, 4).to(parameters)
    moments = (torch.randn(4) + offset).to(parameters), (torch.rand(4) + 0.5).to(parameters)
    return [x, *affine, *torch.randn(2, 1)], moments


def _exact(arguments, moments):
    arguments = [None if t is None else t.double() for t in arguments]
    moments = [t.double() for t in moments]
    return reference.switch_norm(*arguments, **OPTIONS, batch_moments=moments)[0]


@pytest.mark.parametrize('offset', [0.0, 1e4])
@pytest.mark.parametrize('parameters', [torch.float32, torch.float16, torch.float64])
@pytest.mark.parametrize('dtype', [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_values_and_type(shape, dtype, parameters, offset):
    arguments, moments = _arguments(shape, dtype, parameters, offset)

    with torch.no_grad():
        y, observed = switch_norm(*arguments, **OPTIONS, batch_moments=moments)

    assert y.dtype == dtype and observed is None
    exact = _exact(arguments, moments)
    # The mean, in float32, is known to a rounding of itself.
    unit = torch.finfo(torch.float32).eps
    bound = 8 * unit * (1 + abs(offset)) if dtype != torch.float64 else 1e-9
    torch.testing.assert_close(
        y.double(), exact.to(dtype).double(), rtol=2 * torch.finfo(dtype).eps, atol=bound
    )


def test_no_samples():
    arguments, moments = _arguments((0, 4, 3, 3), torch.float32, torch.float32)

    with torch.no_grad():
        y, observed = switch_norm(*arguments, **OPTIONS, batch_moments=moments)

    assert y.shape == (0, 4, 3, 3) and observed is None


@pytest.mark.parametrize('layout', ['channels_last', 'every_second', 'samples_inside'])
@pytest.mark.parametrize(('weight', 'bias'), [(True, False), (False, True), (False, False)])
def test_layouts_and_absent_parameters(layout, weight, bias):
    arguments, moments = _arguments((2, 4, 3, 5), torch.float32, torch.float32)
    arguments[0] = LAYOUTS[layout](arguments[0])
    arguments[1] = arguments[1] if weight else None
    arguments[2] = arguments[2] if bias else None

    y, _ = switch_norm(*arguments, **OPTIONS, batch_moments=moments)

    torch.testing.assert_close(y.double(), _exact(arguments, moments), rtol=1e-5, atol=1e-5)
    assert y.stride() == torch.empty_like(arguments[0]).stride()


def test_gradients_with_and_without_those_of_the_control_parameters():
    arguments, moments = _arguments((2, 4, 3), torch.float64, torch.float64)
    leaves = [t.double().requires_grad_() for t in arguments]
    dy = torch.randn(2, 4, 3).double()
    y, _ = switch_norm(*leaves, **OPTIONS, batch_moments=moments)
    expected = torch.autograd.grad(y, leaves, dy)
    assert not expected[3].any() and not expected[4].any()

    for control in leaves[3:]:
        control.requires_grad_(False)
    y, _ = switch_norm(*leaves, **OPTIONS, batch_moments=moments)

    torch.testing.assert_close(torch.autograd.grad(y, leaves[:3], dy), expected[:3])


def test_a_large_offset_is_left_to_the_other_forms():
    x, mean, var = torch.randn(2, 4, 3), torch.full((4,), 1e4), torch.ones(4)

    assert batch_alone(x, None, None, (mean, var), 1e-5) is None
    assert batch_alone(x, None, None, (mean / 1e4, var), 1e-5) is not None
