"""The op in every type, shape and layout against float64, within one error bound.

Let ε be the unit roundoff of the type of the statistics, X the largest |x| (or given mean), R the
largest 1 / sqrt(mixed variance + ε of Eq. 3), H the largest distance of an input or of a scope's
mean from the mixed mean, times R, Γ the largest |γ|, and D the sum of |dy|. The difference of two
samples' means is known only to εX. So everything that depends on the input has, relative to the
deviations, an error of

    u = ε (1 + X R)

and each quantity is off by at most `UNITS` times

    y               u Γ (1 + H)  + ε |β|
    dL/dx           u Γ R max|dy| (1 + H)²
    dL/dγ           u D (1 + H)
    dL/dβ           ε D
    dL/dλ, dL/dλ′   u Γ D (1 + H)
    mean of 'bn'    ε X
    variance of it  ε (σ² + X σ) + (ε X)²

plus its own rounding to the type in which it is returned. `UNITS` covers the lengths of the sums
and the number of roundings. Where u > 1/16 the digits are lost to the input's own rounding, and the
result only has to be finite. It must be finite wherever the exact one, moved by the error, fits its
type.
"""

from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from sn_openmmlab.kernels.plain.moments import statistics_dtype
from sn_openmmlab.ops.backends import use_backend
from sn_openmmlab.ops.switch_norm import switch_norm
from tests import reference
from tests.backends import ON_CPU
from tests.layouts import LAYOUTS

UNITS = 8
SCOPES = ('in', 'gn', 'ln', 'bn')
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
PARAMETERS = ('weight', 'bias', 'mean_weight', 'var_weight')


class Case(NamedTuple):
    """Hold the inputs of one call: x, γ, β, λ, λ′, then dy, moments of `'bn'` or None, options."""

    inputs: list[Tensor | None]
    dy: Tensor
    batch_moments: tuple[Tensor, Tensor] | None
    options: dict


@st.composite
def all_options(draw):
    return {
        'scopes': tuple(draw(st.permutations(SCOPES))[: draw(st.integers(1, 4))]),
        'num_groups': draw(st.integers(1, 3)),
        'correction': draw(st.sampled_from([0, 1])),
        'eps': draw(st.sampled_from([1e-5, 1e-3, 1.0])),
    }


@st.composite
def shapes(draw, num_groups):
    """Draw up to 5 dimensions, some of them 0, 1 or a long row."""
    channels = num_groups * draw(st.integers(1, 3))
    sizes = st.sampled_from([1, 2, 3, 5, 2, 3, 5, 0, 17])
    positions = draw(st.lists(sizes, max_size=3))
    return (draw(st.sampled_from([2, 1, 3, 5, 0])), channels, *positions)


@st.composite
def values(draw, shape, dtype):
    """Draw normal numbers of any magnitude and offset, the same for all channels or not."""
    magnitude = 10.0 ** draw(st.integers(-6, 4 if dtype == torch.float16 else 6))
    x = torch.randn(shape, dtype=torch.float64)
    if draw(st.booleans()):
        x = x * torch.rand(shape[1], *[1] * (len(shape) - 2), dtype=torch.float64)
    x = x + draw(st.sampled_from([0.0, 0.0, 1.0, -30.0, 1e3, 1e5]))
    largest = x.abs().max().item() if x.numel() else 1.0
    return (x * min(magnitude, 6e4 / largest if dtype == torch.float16 else magnitude)).to(dtype)


@st.composite
def tensors(draw, shape, dtype):
    if draw(st.integers(0, 7)) == 0:
        return draw(values((1, *shape[1:]), dtype)).expand(shape)
    return LAYOUTS[draw(st.sampled_from(sorted(LAYOUTS)))](draw(values(shape, dtype)))


@st.composite
def cases(draw, dtype):
    torch.manual_seed(draw(st.integers(0, 2**16)))
    options = draw(all_options())
    shape = draw(shapes(options['num_groups']))
    x = draw(tensors(shape, dtype))
    dy = LAYOUTS[draw(st.sampled_from(sorted(LAYOUTS)))](torch.randn(shape).to(dtype))
    if draw(st.integers(0, 7)) == 0:
        dy = torch.ones((), dtype=dtype).expand(shape)
    own = draw(st.sampled_from([dtype, statistics_dtype(dtype)]))
    affine = [torch.randn(shape[1]).to(own) if draw(st.booleans()) else None for _ in range(2)]
    spread = draw(st.sampled_from([1.0, 1.0, 3.0, 1e4]))
    controls = [(torch.randn(len(options['scopes'])) * spread).to(own) for _ in range(2)]
    given = None
    if draw(st.booleans()):
        height = x.double().abs().max().item() if x.numel() else 1.0
        tables = torch.randn(shape[1]) * height, torch.rand(shape[1]) * height
        largest = 6e4 if own == torch.float16 else float('inf')
        given = tuple(table.clamp(-largest, largest).to(own) for table in tables)
    return Case([x, *affine, *controls], dy, given, options)


def _double(tensors):
    return None if tensors is None else [None if t is None else t.double() for t in tensors]


def _bounds(case, roundoff):
    """Return the table above without `UNITS`, and whether the digits are lost."""
    x, weight, bias, *controls = _double(case.inputs)
    given, dy = _double(case.batch_moments), case.dy.double()
    options = {name: value for name, value in case.options.items() if name != 'eps'}
    mean, var, means = reference.mixed_moments(x, *controls, **options, batch_moments=given)
    highest = max([x.abs().max(), *([] if given is None else [given[0].abs().max()])])
    rstd = (var + case.options['eps']).rsqrt().max()
    far = max((table - mean).abs().max() for table in means)
    far = max(far, (x - reference.like(mean, x)).abs().max()) * rstd
    gamma = 1.0 if weight is None else weight.abs().max()
    u, total = roundoff * (1 + highest * rstd), dy.abs().sum()
    bounds = {
        'y': u * gamma * (1 + far) + (0 if bias is None else roundoff * bias.abs().max()),
        'x': u * gamma * rstd * dy.abs().max() * (1 + far) ** 2,
        'weight': u * total * (1 + far),
        'bias': roundoff * total,
        'mean_weight': u * gamma * total * (1 + far),
        'var_weight': u * gamma * total * (1 + far),
    }
    return bounds, u > 1 / 16


def _assert_near(found, expected, bounds, lost):
    for name, value in found.items():
        own, exact = torch.finfo(value.dtype), expected[name]
        assert not value.isnan().any(), name
        bound = UNITS * bounds[name] + own.eps / 2 * exact.abs() + own.smallest_normal * own.eps
        fits = exact.abs() + bound <= own.max
        assert value[fits].isfinite().all(), name
        assert lost or ((value.double() - exact).abs() <= bound)[fits].all(), name


def _assert_observed(found, expected, x, roundoff):
    if expected is None:
        assert found is None
        return
    assert found.samples == expected.samples
    highest, var = x.double().abs().max(), expected.var
    assert ((found.mean - expected.mean).abs() <= UNITS * roundoff * highest).all()
    bound = roundoff * (var + highest * var.sqrt()) + (roundoff * highest) ** 2
    assert ((found.var - expected.var).abs() <= UNITS * bound).all()


def _assert_case(case, found, expected):
    """Compare two pairs of named tensors and observed batch moments."""
    x = case.inputs[0]
    if x.numel() == 0:
        assert all((value == 0).all() for value in found[0].values())
        assert found[1] is None or found[1].samples == 0
        return
    roundoff = torch.finfo(statistics_dtype(x.dtype)).eps / 2
    _assert_near(found[0], expected[0], *_bounds(case, roundoff))
    _assert_observed(found[1], expected[1], x, roundoff)


@settings(max_examples=250, deadline=None, derandomize=True)
@given(data=st.data())
def test_the_plain_expression_in_float64_is_the_formula(outcomes, data):
    case = data.draw(cases(torch.float64))
    arguments = {**case.options, 'batch_moments': case.batch_moments}

    with use_backend('plain'):
        found = outcomes(switch_norm, case.inputs, case.dy, **arguments)

    expected = None
    if case.dy.numel():
        expected = outcomes(reference.switch_norm, case.inputs, case.dy, **arguments)
    _assert_case(case, found, expected)


@pytest.mark.parametrize('backend', ON_CPU)
@pytest.mark.parametrize('dtype', DTYPES)
@settings(max_examples=120, deadline=None, derandomize=True)
@given(data=st.data())
def test_every_type_and_layout_is_near_the_plain_expression_in_float64(
    dtype, backend, outcomes, data
):
    case = data.draw(cases(dtype))

    with use_backend(backend):
        found = outcomes(
            switch_norm, case.inputs, case.dy, **case.options, batch_moments=case.batch_moments
        )

    with use_backend('plain'):
        expected = outcomes(
            switch_norm,
            _double(case.inputs),
            case.dy.double(),
            **case.options,
            batch_moments=_double(case.batch_moments),
        )
    _assert_case(case, found, expected)
    given = zip(['x', *PARAMETERS], case.inputs, strict=True)
    assert {name: t.dtype for name, t in given if t is not None} == {
        name: found[0][name].dtype for name in found[0] if name != 'y'
    }
    like = torch.empty_like(case.inputs[0])
    assert found[0]['y'].dtype == like.dtype
    if backend != 'plain' and like.numel():
        assert found[0]['y'].stride() == found[0]['x'].stride() == like.stride()
