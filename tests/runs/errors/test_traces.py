"""Errors of the user's own code and of this package keep their traceback; others need none."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset

from sn_openmmlab.runs.errors.traces import is_for_a_traceback


def is_kept(function: object) -> bool:
    try:
        function()
    except Exception as error:
        return is_for_a_traceback(error, skipped=1)
    raise AssertionError


def test_error_of_a_library() -> None:
    layer = nn.Linear(2, 3)
    try:
        layer(torch.zeros(1, 4))
    except RuntimeError as error:
        # The first frame is this file's, as that of a `with` statement is.
        assert not is_for_a_traceback(error, skipped=1)
        assert is_for_a_traceback(error, skipped=0)


def test_error_of_compiled_code() -> None:
    try:
        np.random.default_rng(0).integers(5, 1)
    except ValueError as error:
        assert not is_for_a_traceback(error, skipped=1)


def test_error_that_went_through_the_users_code() -> None:
    class Own(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ x

    assert is_kept(lambda: Own()(torch.zeros(2, 3)))


class Data(Dataset):
    """Images that the user's own code reads."""

    def __init__(self, items: object) -> None:
        self.items = items

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> object:
        return self.items[index]


def test_error_of_the_users_code_in_a_worker() -> None:
    def caught(data: object) -> Exception:
        with pytest.raises(Exception, match='Original Traceback') as found:
            next(iter(DataLoader(data, num_workers=1)))
        return found.value

    # Torch cannot make a batch of it.
    library = ConcatDataset([[object()]])
    assert not is_for_a_traceback(caught(library), skipped=1)
    assert is_for_a_traceback(caught(Data([])), skipped=1)


def test_full_memory_needs_no_traceback() -> None:
    def fill() -> None:
        raise torch.OutOfMemoryError('out of memory')

    assert not is_kept(fill)


@pytest.mark.parametrize(
    ('module', 'kept'),
    [('sn_openmmlab.kernels.aten.passes', True), ('sn_openmmlab.hooks.x', False)],
)
def test_error_of_this_package_is_foreseen_only_in_its_checks(module: str, kept: bool) -> None:
    namespace = {'__name__': module}
    exec('def fail():\n    raise ValueError("x")', namespace)
    try:
        namespace['fail']()
    except ValueError as error:
        assert is_for_a_traceback(error, skipped=1) is kept
