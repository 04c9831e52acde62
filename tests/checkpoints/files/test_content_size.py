"""The size of a content is that of its copies; what contains itself or is too deep is refused."""

import copy
import pickle
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
import torch
from mmengine.logging import HistoryBuffer

from sn_openmmlab.checkpoints.files.content_size import content_size


@pytest.mark.parametrize(
    ('value', 'size'),
    [
        (None, 16),
        (7, 16),
        ('abc', 3),
        (b'abcd', 4),
        ([], 16),
        ([1, 2], 48),
        ({'ab': 1}, 16 + 2 + 16),
        (torch.ones(3, 4), 48),
        (torch.ones(1).expand(10**6, 10**6), 4 * 10**12),
        (torch.ones(2, 2, dtype=torch.float64).to_sparse(), 32),
        (np.ones(5), 40),
        (np.float32(1), 16),
    ],
)
def test_sizes(value: Any, size: int) -> None:
    assert content_size(value) == size


def test_shared_parts_count_as_often_as_they_are_used() -> None:
    weight = torch.ones(10)
    assert content_size({'a': weight, 'b': weight}) == 16 + 2 * (1 + 40)
    doubled: Any = ()
    for _ in range(60):
        doubled = (doubled, doubled)
    assert content_size(doubled) > 2**60
    # A copy visits all of them, which this does not wait for.
    assert copy.deepcopy(((), ())) == ((), ())


def test_attributes_count() -> None:
    weights = OrderedDict()
    weights._metadata = {'a': torch.ones(100)}
    assert content_size(weights) > 400
    assert content_size(HistoryBuffer(np.ones(50), np.ones(50))) > 800


def test_what_contains_itself_is_refused() -> None:
    cyclic: list = []
    cyclic.append({'a': (cyclic,)})
    with pytest.raises(ValueError, match='contains itself'):
        content_size(cyclic)


def test_depth() -> None:
    deep: list = []
    for _ in range(50):
        deep = [deep]
    assert content_size(deep) == 51 * 16
    for _ in range(20_000):
        deep = [deep]
    with pytest.raises(ValueError, match='too deep'):
        content_size(deep)
    with pytest.raises(RecursionError):
        pickle.dumps(deep)
