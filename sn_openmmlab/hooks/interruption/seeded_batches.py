"""Batches of a training whose order and random numbers depend on nothing but their number."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from torch.utils.data import Sampler

from sn_openmmlab.inference.random_state import seed_random_numbers


def mixed_seed(*numbers: int) -> int:
    """Return a seed of 32 bits that differs for other numbers, of which none is negative."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


class SeededBatch(list):
    """The indices of a batch, which seed all random numbers where a data loader reads them.

    That is where it loads the batch: in one of its workers, or without any in the process that
    trains.
    """

    def __init__(self, indices: Sequence[int], seed: int) -> None:
        super().__init__(indices)
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        seed_random_numbers(self.seed)
        return super().__iter__()

    def __reduce__(self) -> tuple:
        # Otherwise it would be iterated over on its way to a worker.
        return SeededBatch, (self[:], self.seed)


class SeededBatches(Sampler):
    """The batches of a batch sampler, which can begin anywhere, each with a seed of its own.

    Args:
        batches: the batch sampler.
        first: returns the number of the batch that an iteration over the batches begins with.
        seed_of: returns the seed of the batch of a number.
    """

    def __init__(
        self, batches: Any, first: Callable[[], int], seed_of: Callable[[int], int]
    ) -> None:
        self._batches = batches
        self._first = first
        self._seed_of = seed_of
        self._begun: Iterator[list[int]] | None = None

    def skip(self, number: int, epoch: int = 0) -> int:
        """Leave out batches, without loading them, before those that come next.

        Args:
            number: how many.
            epoch: the one that they begin in.

        Returns:
            The epoch that the last of them is in.
        """
        while True:
            if hasattr(self.sampler, 'set_epoch'):
                self.sampler.set_epoch(epoch)
            self._begun = iter(self._batches)
            taken = sum(1 for _ in islice(self._begun, number))
            number -= taken
            if not number or not taken:
                return epoch
            epoch += 1

    def __iter__(self) -> Iterator[SeededBatch]:
        begun, self._begun = self._begun, None
        begun = iter(self._batches) if begun is None else begun
        for number, indices in enumerate(begun, self._first()):
            yield SeededBatch(indices, self._seed_of(number))

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def sampler(self) -> Any:
        """The sampler of the indices, which hooks look for; None if there is none to be seen."""
        return getattr(self._batches, 'sampler', None)

    @property
    def batch_size(self) -> int:
        """The number of images in a batch; 1 if the batch sampler does not tell."""
        return getattr(self._batches, 'batch_size', None) or 1
