"""The comparison of a backend with ATen: its exact values, and what it lets pass."""

import pytest
import torch

from sn_openmmlab.kernels import agreement
from sn_openmmlab.kernels.agreement import allowed_error, by_stages, disagreement
from sn_openmmlab.kernels.aten import stages as aten
from tests import reference
from tests.backends import HAS_CPP

CPU = torch.device('cpu')
DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@pytest.mark.parametrize('dtype', DTYPES)
def test_backends_that_are_known_to_be_right_agree(dtype):
    assert disagreement(by_stages(aten), CPU, dtype) is None
    if HAS_CPP:
        from sn_openmmlab.kernels.cpp import stages as cpp

        assert disagreement(by_stages(cpp), CPU, dtype) is None


def test_they_are_compared_with_the_equations_of_the_paper():
    x, dy, *parameters = (t.double().requires_grad_() for t in agreement._inputs(torch.bfloat16))
    options = agreement.MIXTURE._asdict()
    del options['instance_variance']

    y, batch = reference.switch_norm(x, *parameters, **options)
    gradients = torch.autograd.grad(y, [x, *parameters], dy)

    with torch.no_grad():
        found = by_stages(aten)(x, dy, *parameters)
    expected = (torch.stack(batch[:2]), y, *gradients)
    torch.testing.assert_close(tuple(found), expected, rtol=1e-9, atol=1e-9)


def test_a_second_call_that_is_wrong_is_found():
    calls = []

    def passes(*arguments):
        calls.append(arguments)
        found = list(by_stages(aten)(*arguments))
        return found if len(calls) == 1 else [*found[:-1], 2 * found[-1]]

    wrong = disagreement(passes, CPU, torch.float32)

    assert wrong == 'the error of the gradient of λ′ is 1.0e+00 in contiguous float32'


@pytest.mark.parametrize('dtype', DTYPES)
def test_rounding_is_allowed_and_a_wrong_digit_is_not(dtype):
    right = torch.rand(9999, dtype=torch.float64) + 1

    rounding = ((right.to(dtype).double() - right) / right).abs().max()

    # In float32 tests of the kernels see errors up to 1e-6.
    assert max(rounding, 1e-6) < allowed_error(dtype) < max(4 * rounding, 1e-3)
