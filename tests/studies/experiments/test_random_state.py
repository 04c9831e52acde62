"""The random numbers after the context are those that would have come without it."""

import random

import numpy as np
import pytest
import torch

from studies.experiments.random_state import kept_random_state


def draw() -> tuple[float, float, float]:
    return random.random(), np.random.random(), torch.rand(()).item()


def test_all_generators_go_on_as_if_nothing_was_drawn() -> None:
    with kept_random_state():
        wanted = draw()
    with kept_random_state():
        draw()
        draw()
    assert draw() == wanted
    with pytest.raises(RuntimeError, match='stop'), kept_random_state():
        wanted = draw()
        raise RuntimeError('stop')
    assert draw() == wanted
