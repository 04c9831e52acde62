"""The walk visits every element once, in blocks of a bounded size, in any layout."""

import threading

import pytest
import torch

from sn_openmmlab.kernels.aten import walk as module
from sn_openmmlab.kernels.aten.walk import Walk, scratch

SHAPES = [(3, 5), (3, 5, 7), (2, 3, 4, 5), (2, 3, 2, 4, 3), (1, 1, 1, 1), (4, 1, 9), (1, 6, 1, 8)]
BLOCKS = [1, 2, 5, 16, 1000]


@pytest.fixture
def block_elements(monkeypatch):
    """Return a function that sets the size of a block."""

    def set_elements(elements):
        monkeypatch.setattr(module, 'BLOCK_ELEMENTS', elements)
        monkeypatch.setattr(module, '_kept', threading.local())

    return set_elements


def _layout(shape, channels_last):
    x = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    return x.movedim(1, -1).contiguous().movedim(-1, 1) if channels_last else x


@pytest.mark.parametrize('channels_last', [False, True])
@pytest.mark.parametrize('elements', BLOCKS)
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_the_blocks_hold_every_element_once_with_its_part_of_the_table(
    shape, elements, channels_last, block_elements
):
    block_elements(elements)
    x = _layout(shape, channels_last)
    table = torch.arange(float(shape[0] * shape[1])).reshape(shape[:2])
    walk = Walk(x)
    visits, sums = torch.zeros(shape), torch.zeros(shape)

    for part, block in walk.blocks():
        walk.view(visits)[block] += 1
        walk.view(sums)[block] += walk.table(table)[part]

    assert torch.equal(visits, torch.ones(shape))
    assert torch.equal(sums, table.reshape(*shape[:2], *[1] * (len(shape) - 2)).expand(shape))


@pytest.mark.parametrize('channels_last', [False, True])
@pytest.mark.parametrize('shape', [(2, 3, 40, 5), (3, 8, 4, 4, 4), (30, 7, 11)], ids=str)
def test_no_block_is_larger_than_the_bound_unless_it_cannot_be_smaller(
    shape, channels_last, block_elements
):
    block_elements(64)
    x = _layout(shape, channels_last)
    walk = Walk(x)

    sizes = [walk.view(x)[block].numel() for _, block in walk.blocks()]

    # One index of each walked dimension: a row of pixels, of all channels or of one.
    smallest = walk.view(x)[(0, 0) if channels_last else (0, 0, 0)].numel()
    assert max(sizes) <= max(64, smallest)
    assert len(sizes) > 1


@pytest.mark.parametrize('channels_last', [False, True])
@pytest.mark.parametrize('elements', BLOCKS)
def test_the_blocks_of_a_group_hold_all_positions_of_its_part(
    elements, channels_last, block_elements
):
    block_elements(elements)
    x = _layout((3, 4, 5, 2), channels_last)
    walk = Walk(x)
    sums = walk.view(torch.zeros(3, 4, 1, 1)).clone()

    for part, blocks in walk.groups():
        for block in blocks:
            sums[part] += walk.view(x)[block].sum(walk.positions, keepdim=True)

    assert torch.equal(sums.flatten(1), x.sum((2, 3)))


@pytest.mark.parametrize('dtype', [torch.float16, torch.float32, torch.float64])
def test_the_scratch_is_one_piece_of_memory_in_any_type(dtype):
    first, second = scratch(torch.empty(3, 4), dtype), scratch(torch.empty(7), dtype)

    assert first.shape == (3, 4) and first.dtype == second.dtype == dtype
    assert first.data_ptr() == second.data_ptr()


def test_every_thread_has_a_scratch_of_its_own():
    found = []
    thread = threading.Thread(target=lambda: found.append(scratch(torch.empty(3), torch.float32)))
    thread.start()
    thread.join()

    assert found[0].data_ptr() != scratch(torch.empty(3), torch.float32).data_ptr()


def test_more_than_a_block_is_not_kept(block_elements):
    block_elements(4)
    large = torch.empty(5)

    assert scratch(large, torch.float32).data_ptr() != scratch(large[:4], torch.float32).data_ptr()
