"""The op against Eq. 3 and 5 on given batch moments, and what it returns."""

import pytest
import torch

from sn_openmmlab.ops.switch_norm import switch_norm
from tests import reference

SCOPES = ('bn', 'in', 'ln')
OPTIONS = {'scopes': SCOPES, 'num_groups': 2, 'correction': 0, 'eps': 1e-3}


@pytest.fixture
def arguments():
    """Return x, γ, β, λ, λ′ in float64."""
    shapes = [(2, 4, 3, 3), (4,), (4,), (3,), (3,)]
    return [torch.randn(shape, dtype=torch.float64) for shape in shapes]


def _expected(*arguments):
    *arguments, batch_moments = arguments
    return reference.switch_norm(*arguments, **OPTIONS, batch_moments=batch_moments)[0]


def test_given_batch_moments_take_the_place_of_those_of_the_batch(arguments):
    batch_moments = torch.randn(4).double(), torch.rand(4).double()

    y, observed = switch_norm(*arguments, **OPTIONS, batch_moments=batch_moments)

    torch.testing.assert_close(y, _expected(*arguments, batch_moments))
    assert observed is None


def test_without_them_it_returns_those_of_the_batch_detached(arguments):
    x = arguments[0].clone().requires_grad_()

    y, observed = switch_norm(x, *arguments[1:], **OPTIONS)

    pixels = x.detach().transpose(0, 1).flatten(1)
    expected = pixels.mean(1), pixels.var(1, unbiased=False)
    assert observed.samples == 2
    for table, value in zip(observed[:2], expected, strict=True):
        assert not table.requires_grad
        torch.testing.assert_close(table, value)
    torch.testing.assert_close(y.detach(), _expected(*arguments, expected))


def test_without_the_batch_scope_there_is_nothing_to_observe(arguments):
    x, weight, bias, mean_weight, var_weight = arguments
    options = {**OPTIONS, 'scopes': ('in', 'ln')}

    _, observed = switch_norm(x, weight, bias, mean_weight[:2], var_weight[:2], **options)

    assert observed is None


@pytest.mark.parametrize(('with_weight', 'with_bias'), [(False, True), (True, False), (False,) * 2])
def test_absent_weight_is_one_and_absent_bias_zero(arguments, with_weight, with_bias):
    x, weight, bias, *controls = arguments
    given = [weight if with_weight else None, bias if with_bias else None]
    stated = [weight if with_weight else torch.ones(4), bias if with_bias else torch.zeros(4)]
    batch_moments = torch.randn(4).double(), torch.rand(4).double()

    y, _ = switch_norm(x, *given, *controls, **OPTIONS, batch_moments=batch_moments)

    torch.testing.assert_close(y, _expected(x, *stated, *controls, batch_moments))


def test_it_changes_none_of_its_arguments(arguments):
    batch_moments = torch.randn(4).double(), torch.rand(4).double()
    given = [*arguments, *batch_moments]
    before = [tensor.clone() for tensor in given]

    switch_norm(*arguments, **OPTIONS)
    switch_norm(*arguments, **OPTIONS, batch_moments=batch_moments)

    assert all(torch.equal(*pair) for pair in zip(given, before, strict=True))
