"""Which tensors count as not finite."""

import math

import pytest
import torch

from sn_openmmlab.hooks.non_finite.checks import any_non_finite, tensors_in

CPU = torch.device('cpu')


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize('bad', [math.nan, math.inf, -math.inf])
def test_one_number_is_found_among_many(dtype: torch.dtype, bad: float) -> None:
    tensors = [torch.ones(3, 5, dtype=dtype), torch.ones(7, 2), torch.ones(4, dtype=torch.int64)]
    assert not any_non_finite(tensors, CPU)
    assert not any_non_finite(tensors, CPU, exact=False)
    tensors[0][2, 4] = bad
    assert any_non_finite(tensors, CPU)
    assert any_non_finite(tensors, CPU, exact=False)


def test_large_numbers_are_finite_though_their_sums_and_squares_are_not() -> None:
    for dtype in (torch.float16, torch.float32, torch.float64):
        largest = torch.full((100,), torch.finfo(dtype).max, dtype=dtype)
        assert not any_non_finite([largest, -largest], CPU)


def test_empty_sparse_and_complex_tensors() -> None:
    assert not any_non_finite([], CPU)
    assert not any_non_finite([torch.empty(0, 3)], CPU)
    sparse = torch.sparse_coo_tensor(
        [[1, 1]], [torch.finfo(torch.float32).max] * 2, (4,), check_invariants=True
    )
    # The entries of a place are added up.
    assert any_non_finite([sparse], CPU)
    assert any_non_finite([torch.tensor([complex(0, math.nan)])], CPU)
    assert not any_non_finite([torch.tensor([1j])], CPU)


def test_tensors_in_nested_values_are_found() -> None:
    a, b, c = (torch.tensor(i) for i in range(3))
    assert list(tensors_in(dict(x=[a, 'text', (b, None)], y=c))) == [a, b, c]


def test_layouts_and_types_that_torch_has_no_norm_of() -> None:
    matrix = torch.ones(4, 6)
    kinds = [
        matrix.to_sparse_csr(),
        matrix.to_sparse_bsc((2, 2)),
        torch.quantize_per_tensor(matrix, 0.1, 0, torch.qint8),
        torch.empty(2, device='meta'),
    ]
    assert not any_non_finite([*kinds, matrix.to(torch.float8_e4m3fn)], CPU)
    assert any_non_finite([(matrix * math.nan).to(torch.float8_e5m2)], CPU)
    assert any_non_finite([(matrix * math.nan).to_sparse_csr()], CPU)
