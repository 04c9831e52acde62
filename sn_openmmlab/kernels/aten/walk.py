"""Walk over a big tensor in blocks that stay in the cache between elementwise calls."""

import threading
from collections.abc import Iterator

import torch
from torch import Tensor

# 4 MB of float32: larger blocks do not fit the last cache, smaller ones need more calls.
BLOCK_ELEMENTS = 1 << 20

Index = tuple[slice, ...]
_kept = threading.local()


class Walk:
    """The order and the blocks in which to visit a tensor of shape (N, C, *).

    A channels_last tensor is visited as (N, *, C), any other as it is, so that no block is copied
    to change its order. On devices other than the CPU the tensor is one block.

    Attributes:
        positions: the dimensions of the positions, in the order of the visit.
        count: the number of positions.
    """

    def __init__(self, x: Tensor) -> None:
        dims = max(x.dim(), 3)
        self.channels_last = x.dim() > 2 and x.shape[1] > 1 and x.stride(1) < x.stride(-1)
        self.order = (0, *range(2, dims), 1) if self.channels_last else tuple(range(dims))
        self.positions = tuple(range(1, dims - 1) if self.channels_last else range(2, dims))
        shape = self.view(x).shape
        self.count = shape[self.positions[0] : self.positions[-1] + 1].numel()
        self.table_shape = tuple(1 if d in self.positions else shape[d] for d in range(dims))
        self.sizes = tuple(shape[d] for d in self._walked())
        self.steps = self._steps(shape) if x.is_cpu else tuple(max(size, 1) for size in self.sizes)

    def view(self, x: Tensor) -> Tensor:
        """Return `x` in the order of the visit; (N, C) gets one position."""
        return (x if x.dim() > 2 else x.unsqueeze(-1)).permute(self.order)

    def table(self, table: Tensor) -> Tensor:
        """Return an (N, C) or (1, C) table in a shape that broadcasts to the visited tensor."""
        shape = (table.shape[0], *self.table_shape[1:])
        return table.reshape(shape).expand(self.table_shape)

    def groups(self) -> Iterator[tuple[Index, list[Index]]]:
        """Yield the parts of the table, each with the blocks that hold all its positions."""
        first, *others = zip(self.sizes, self.steps, strict=True)
        channels, positions = (None, others[0]) if self.channels_last else others
        splits = _ranges(*positions)
        for samples in _ranges(*first):
            if self.channels_last:
                yield (samples,), [(samples, split) for split in splits]
            else:
                for part in _ranges(*channels):
                    yield (samples, part), [(samples, part, split) for split in splits]

    def blocks(self) -> Iterator[tuple[Index, Index]]:
        """Yield all blocks, each after the part of the table that belongs to it."""
        for part, blocks in self.groups():
            for block in blocks:
                yield part, block

    def _walked(self) -> tuple[int, ...]:
        return (0, 1) if self.channels_last else (0, 1, 2)

    def _steps(self, shape: torch.Size) -> tuple[int, ...]:
        steps = []
        for d in self._walked():
            inner = max(shape[d + 1 :].numel(), 1)
            steps.append(min(max(BLOCK_ELEMENTS // inner, 1), max(shape[d], 1)))
        return tuple(steps)


def scratch(like: Tensor, dtype: torch.dtype) -> Tensor:
    """Return an uninitialized tensor shaped as `like`, valid until this thread's next call.

    The system hands out a new allocation of this size page by page, which costs more than the
    arithmetic on it. So the CPU's memory is kept.
    """
    if not like.is_cpu or like.numel() > BLOCK_ELEMENTS:
        return torch.empty(like.shape, dtype=dtype, device=like.device)
    kept = getattr(_kept, 'memory', None)
    if kept is None:
        kept = _kept.memory = torch.empty(8 * BLOCK_ELEMENTS, dtype=torch.uint8, device='cpu')
    return kept.view(dtype)[: like.numel()].view(like.shape)


def _ranges(size: int, step: int) -> list[slice]:
    return [slice(start, start + step) for start in range(0, size, step)]
