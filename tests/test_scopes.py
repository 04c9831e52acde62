"""The table of scopes, and that every backend follows it."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from sn_openmmlab.kernels.aten import tables
from sn_openmmlab.kernels.contract import Mixture
from sn_openmmlab.kernels.cpp import library
from sn_openmmlab.kernels.cpp.scopes import CODES
from sn_openmmlab.kernels.plain.scopes import pool
from sn_openmmlab.kernels.triton import FUSED_SCOPES
from sn_openmmlab.scopes import SCOPES
from tests.reference import scope_moments

SHAPE = (3, 6, 5)


def test_the_scopes_are_those_of_the_paper_and_group_normalization():
    assert list(SCOPES) == ['in', 'gn', 'ln', 'bn']


def test_colors_are_six_hex_digits_and_differ():
    colors = [scope.color for scope in SCOPES.values()]

    assert all(re.fullmatch('#[0-9a-f]{6}', color) for color in colors)
    assert len(set(colors)) == len(colors)


def lightness(color: str) -> float:
    """Return L* of CIELAB, from 0 for black to 100 for white."""
    red, green, blue = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)
    ]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return 116 * luminance ** (1 / 3) - 16


def test_colors_differ_in_lightness_so_that_grey_and_color_blindness_leave_them_apart():
    steps = sorted(lightness(scope.color) for scope in SCOPES.values())

    assert min(right - left for left, right in pairwise(steps)) > 14
    # None of them is lost on white paper.
    assert steps[-1] < 85


@pytest.mark.parametrize('scope', SCOPES)
def test_dims_and_groups_say_what_a_scope_pools(scope):
    x = torch.randn(SHAPE, dtype=torch.float64)
    expected = scope_moments(x, scope, num_groups=2)[0]
    dims, grouped, _ = SCOPES[scope]

    table = x.mean(-1).view(3, *((2, 3) if grouped else (1, 6)))
    dims = [2 if dim == 1 else dim for dim in dims]
    pooled = table.mean(dims, keepdim=True) if dims else table

    torch.testing.assert_close(pooled.expand(table.shape).reshape(3, 6), expected)


@pytest.mark.parametrize('scope', SCOPES)
def test_the_plain_and_the_aten_backend_know_every_scope(scope):
    mean, var = torch.randn(2, *SHAPE[:2], dtype=torch.float64).abs()
    pooled = [table.expand(3, 6) for table in pool(mean, var, scope, 2)]

    instances = torch.stack((mean, var))
    batch = tables.batch_moments(instances) if scope == 'bn' else None
    controls = torch.ones(2, 1, dtype=torch.float64)
    centre, rstd = tables.mix(instances, batch, tuple(controls), Mixture((scope,), 2, 0, 0.0))

    torch.testing.assert_close(centre, pooled[0])
    torch.testing.assert_close(rstd, pooled[1].rsqrt())


def test_triton_fuses_known_scopes():
    assert set(FUSED_SCOPES) <= set(SCOPES)


def test_the_compiled_code_numbers_every_scope_as_its_source_does():
    source = Path(library.__file__).parent / 'csrc' / 'tables.h'
    (body,) = re.findall(r'enum Scope[^{]*\{([^}]*)\}', source.read_text())
    numbers = [int(number) for number in re.findall(r'= (\d+)', body)]

    assert list(CODES) == list(SCOPES) and list(CODES.values()) == numbers
