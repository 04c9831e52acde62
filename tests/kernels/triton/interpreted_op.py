"""The op on the 'triton' backend against the plain expression in float64, and its determinism.

The bounds are those of `tests/ops/test_switch_norm_bounds.py`: with ε the unit roundoff of float32,
X the largest |x|, R the largest 1 / sqrt(mixed variance + ε of Eq. 3), H the largest distance of an
input from the mixed mean, times R, Γ the largest |γ|, D the sum of |dy| and u = ε (1 + X R), the
error is at most four times u Γ (1 + H) + ε |β| for y, u Γ R max|dy| (1 + H)² for dL/dx, u D (1 + H)
for dL/dγ, ε D for dL/dβ and u Γ D (1 + H) for dL/dλ, plus the rounding to the type of the result.
"""

from typing import NamedTuple

import pytest
import torch

from sn_openmmlab.kernels.contract import Mixture
from sn_openmmlab.ops.backends import use_backend
from sn_openmmlab.ops.batch_moments import batch_moments
from sn_openmmlab.ops.switch_norm import switch_norm
from tests import reference
from tests.layouts import LAYOUTS

NAMES = ('x', 'weight', 'bias', 'mean_weight', 'var_weight')
ROUNDOFF = 2.0**-24


class Case(NamedTuple):
    shape: tuple[int, ...] = (2, 4, 5, 7)
    dtype: torch.dtype = torch.float32
    scopes: tuple[str, ...] = ('in', 'ln', 'bn')
    magnitude: float = 1.0
    offset: float = 0.0
    layout: str = 'contiguous'
    correction: int = 0
    eps: float = 1e-5
    affine: bool = True
    given: bool = False
    parameters: torch.dtype = torch.float32
    ratio_groups: int = 1


CASES = {
    'default': Case(),
    'one position': Case((3, 4), correction=1),
    'one sample': Case((1, 4, 1, 3), scopes=('bn', 'gn'), affine=False),
    'volume': Case((2, 4, 2, 3, 3), layout='channels_last', scopes=('gn', 'ln'), correction=1),
    'tiny': Case(magnitude=1e-6, eps=1e-12, scopes=('gn', 'in', 'bn', 'ln')),
    'huge': Case(magnitude=1e6, layout='samples_inside'),
    'offset': Case(offset=1e3, layout='every_second'),
    'long rows': Case((1, 2, 9001), offset=-30.0),
    'evaluation': Case(given=True, layout='every_second_channel'),
    'ratio groups': Case(scopes=('in', 'gn', 'ln', 'bn'), ratio_groups=4, layout='channels_last'),
    'half': Case(dtype=torch.float16, magnitude=1e3, layout='channels_last'),
    'half parameters': Case(dtype=torch.float16, parameters=torch.float16, layout='part'),
    'bfloat16': Case(dtype=torch.bfloat16, offset=5.0, parameters=torch.bfloat16, given=True),
}


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request):
    return request.param


@pytest.fixture
def inputs(case):
    x = (torch.randn(case.shape) * case.magnitude + case.offset).to(case.dtype)
    affine = torch.randn(2, case.shape[1]).to(case.parameters) if case.affine else (None, None)
    groups = (case.ratio_groups,) if case.ratio_groups > 1 else ()
    controls = torch.randn(2, *groups, len(case.scopes)).to(case.parameters)
    return [LAYOUTS[case.layout](x), *affine, *controls]


@pytest.fixture
def given(case):
    if not case.given:
        return None
    return torch.randn(case.shape[1]) + case.offset, torch.rand(case.shape[1]) + 0.5


@pytest.fixture
def dy(case):
    return torch.randn(case.shape).to(case.dtype)


def _double(values):
    return None if values is None else [None if v is None else v.double() for v in values]


def _mixture(case):
    return Mixture(case.scopes, 2, case.correction, case.eps)


def _outcome(backend, case, inputs, given, dy):
    leaves = [None if t is None else t.detach().requires_grad_() for t in inputs]
    with use_backend(backend):
        y, observed = switch_norm(*leaves, **_mixture(case)._asdict(), batch_moments=given)
        y.backward(dy)
    grads = {n: t.grad for n, t in zip(NAMES, leaves, strict=True) if t is not None}
    return {'y': y.detach(), **grads}, observed


def _bounds(case, inputs, given, dy):
    x, weight, bias, *controls = inputs
    options = _mixture(case)._asdict()
    eps, _ = options.pop('eps'), options.pop('instance_variance')
    centre, var, _ = reference.mixed_moments(x, *controls, **options, batch_moments=given)
    rstd = (var + eps).rsqrt()
    far = (x - reference.like(centre, x)).abs().max() * rstd.max()
    gamma = 1.0 if weight is None else weight.abs().max()
    u = ROUNDOFF * (1 + x.abs().max() * rstd.max())
    total = dy.abs().sum()
    return {
        'y': u * gamma * (1 + far) + (0 if bias is None else ROUNDOFF * bias.abs().max()),
        'x': u * gamma * rstd.max() * dy.abs().max() * (1 + far) ** 2,
        'weight': u * total * (1 + far),
        'bias': ROUNDOFF * total,
        'mean_weight': u * gamma * total * (1 + far),
        'var_weight': u * gamma * total * (1 + far),
    }


def test_output_and_gradients_are_near_the_plain_expression(case, inputs, given, dy, rounding):
    found, observed = _outcome('triton', case, inputs, given, dy)

    exact = (_double(inputs), _double(given), dy.double())
    expected, exact_observed = _outcome('plain', case, *exact)
    bounds = _bounds(case, *exact)
    for name, value in found.items():
        error = (value.double() - expected[name]).abs()
        assert (error <= 4 * bounds[name] + rounding(value, expected[name])).all(), name
    assert found['y'].stride() == found['x'].stride() == torch.empty_like(inputs[0]).stride()
    assert (observed is None) == (exact_observed is None)
    if observed is not None:
        highest, var = inputs[0].abs().max().double(), exact_observed.var
        assert ((observed.mean - exact_observed.mean).abs() <= 4 * ROUNDOFF * highest).all()
        bound = ROUNDOFF * (var + highest * var.sqrt()) + (ROUNDOFF * highest) ** 2
        assert ((observed.var - var).abs() <= 4 * bound).all()


def test_the_same_input_gives_the_same_bits():
    case = Case(scopes=('in', 'gn', 'ln', 'bn'))
    x = torch.randn(case.shape)
    arguments = [x, *torch.randn(2, 4), *torch.randn(2, 4)]

    first, again = (_outcome('triton', case, arguments, None, torch.ones_like(x)) for _ in '12')

    assert all(torch.equal(first[0][name], again[0][name]) for name in first[0])


@pytest.mark.parametrize('dtype', [torch.float32, torch.float16])
def test_a_large_constant_gives_beta(dtype):
    x = torch.full((2, 3, 7, 9), 6e4, dtype=dtype)
    bias, controls = torch.randn(3), torch.randn(2, 3)

    options = {'scopes': ('in', 'ln', 'bn'), 'num_groups': 1, 'eps': 1e-5, 'correction': 0}
    with use_backend('triton'):
        y, observed = switch_norm(x, torch.randn(3), bias, *controls, **options)

    assert torch.equal(y, bias.to(dtype)[:, None, None].expand(y.shape))
    assert torch.equal(observed.var, torch.zeros(3))


@pytest.mark.parametrize('dtype', [torch.float32, torch.float16])
def test_the_moments_of_a_batch_alone_are_torchs(dtype):
    x = (torch.randn(2, 3, 4, 5) * 3 + 10).to(dtype)
    var, mean = torch.var_mean(x.double(), (0, 2, 3), correction=0)
    with use_backend('triton'):
        found = batch_moments(x)
    torch.testing.assert_close(found, (mean.float(), var.float()), rtol=1e-5, atol=1e-5)
