"""Random numbers of one's own, which leave those of everything else as they were."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def kept_random_state() -> Iterator[None]:
    """Restore at the end the random numbers of Python, NumPy and torch on all its devices."""
    python, numpy = random.getstate(), np.random.get_state()
    cpu, gpus = torch.get_rng_state(), torch.cuda.get_rng_state_all()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        torch.set_rng_state(cpu)
        torch.cuda.set_rng_state_all(gpus)


@contextmanager
def own_random_state(seed: int) -> Iterator[None]:
    """Seed Python, NumPy and torch on all its devices inside; restore all of them afterwards."""
    with kept_random_state():
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        yield
