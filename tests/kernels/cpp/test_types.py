"""Numbers of 16 bits are read exactly and written as torch writes them, whatever their bits."""

import pytest
import torch

from sn_openmmlab.kernels.contract import Mixture
from sn_openmmlab.kernels.cpp import stages

HALVES = [torch.float16, torch.bfloat16]


def _scaled(x, factor):
    """Return `x * factor` by the kernels: mean 0, variance 1, ε 0."""
    instances = torch.stack((torch.zeros(x.shape[:2]), torch.ones(x.shape[:2])))
    control, weight = torch.ones(1), torch.full((x.shape[1],), factor)
    mixture = Mixture(('in',), 1, 0, 0.0)
    y, _ = stages.normalize(x, instances, None, (weight, None), (control, control), mixture)
    return y


def _all_numbers(dtype, length):
    """Return every number of a type in rows of a length, with some left over."""
    bits = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
    return bits[: 2**16 // length * length].view(dtype).reshape(1, -1, length)


def _assert_same(found, expected):
    none = expected.isnan()
    assert torch.equal(found.isnan(), none)
    assert torch.equal(found[~none].view(torch.int16), expected[~none].view(torch.int16))


# Rows of whole vectors, and with numbers left over.
@pytest.mark.parametrize('length', [64, 61, 5])
@pytest.mark.parametrize('dtype', HALVES)
def test_every_number_is_read_and_written_back(dtype, length):
    x = _all_numbers(dtype, length)
    # 0 + -0 is 0.
    expected = torch.where(x == 0, torch.zeros_like(x), x)

    _assert_same(_scaled(x, 1.0), expected)


@pytest.mark.parametrize('length', [64, 61])
@pytest.mark.parametrize('factor', [1 / 3, 1.0009765625, 7.7e-4, 65.3])
@pytest.mark.parametrize('dtype', HALVES)
def test_results_are_rounded_as_torch_rounds_them(dtype, factor, length):
    x = _all_numbers(dtype, length)
    exact = x.float() * torch.tensor(factor)
    expected = torch.where(exact == 0, torch.zeros_like(exact), exact).to(dtype)

    _assert_same(_scaled(x, factor), expected)


@pytest.mark.parametrize('dtype', HALVES)
def test_halves_between_two_numbers_go_to_the_even_one(dtype):
    step = torch.finfo(dtype).eps
    x = torch.ones(1, 1, 16, dtype=dtype) + torch.arange(16) * step
    x = x.to(dtype)

    y = _scaled(x, 0.5)

    _assert_same(y, (x.float() * 0.5).to(dtype))
