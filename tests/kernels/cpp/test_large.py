"""Outputs too large for the cache, which are written past it, are right.

They are written in vectors to aligned places, so rows and positions of every alignment are tried.
"""

import pytest
import torch

from sn_openmmlab.ops.backends import use_backend
from sn_openmmlab.ops.switch_norm import switch_norm

# Each holds more than 16 MiB of float32.
ROWS = [(1, 2, 1448, 1452), (3, 1, 1187, 1181), (1, 21000, 8, 26), (90000, 1, 7, 7)]
PANELS = [(1, 64, 257, 257), (2, 300, 83, 85), (1, 1025, 64, 65)]
CASES = [(shape, torch.contiguous_format) for shape in ROWS]
CASES += [(shape, torch.channels_last) for shape in PANELS]


def _run(x, dy):
    x = x.detach().requires_grad_()
    control = torch.ones(1)
    settings = dict(scopes=('in',), num_groups=1, correction=0, eps=1e-5)
    with use_backend('cpp'):
        y, _ = switch_norm(x, None, None, control, control, **settings)
    return y.detach(), *torch.autograd.grad(y, x, dy)


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(('shape', 'memory_format'), CASES, ids=str)
def test_output_and_gradient_are_those_of_the_formula(shape, memory_format, dtype):
    torch.manual_seed(0)
    x, dy = (torch.randn(shape, dtype=dtype).contiguous(memory_format=memory_format) for _ in 'xy')
    assert x.nbytes > 2**24

    found = _run(x, dy)

    exact = x.double().requires_grad_()
    var, mean = torch.var_mean(exact, (2, 3), correction=0, keepdim=True)
    y = (exact - mean) / (var + 1e-5).sqrt()
    expected = (y.detach(), *torch.autograd.grad(y, exact, dy.double()))
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    for value, right in zip(found, expected, strict=True):
        assert value.is_contiguous(memory_format=memory_format)
        torch.testing.assert_close(value.double(), right, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(('shape', 'memory_format'), CASES[::3], ids=str)
def test_threads_see_what_each_other_wrote(shape, memory_format):
    torch.manual_seed(0)
    x, dy = (torch.randn(shape).contiguous(memory_format=memory_format) for _ in 'xy')
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        expected = _run(x, dy)
        torch.set_num_threads(3)
        found = _run(x, dy)
    finally:
        torch.set_num_threads(before)
    for value, right in zip(found, expected, strict=True):
        assert torch.equal(value, right)
