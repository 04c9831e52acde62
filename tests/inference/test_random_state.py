"""What is drawn inside is reproducible, and what is drawn after is as if there had been nothing."""

import random

import numpy as np
import pytest
import torch

from sn_openmmlab.inference.random_state import own_random_state


def _draw():
    return random.random(), np.random.rand(), torch.rand(()).item()


def test_the_same_seed_draws_the_same_and_another_does_not():
    drawn = []
    for seed in (3, 3, 4):
        with own_random_state(seed):
            drawn.append(_draw())
    assert drawn[0] == drawn[1]
    assert not set(drawn[0]) & set(drawn[2])


@pytest.mark.parametrize('error', [None, KeyError])
def test_all_generators_go_on_as_before(error):
    with own_random_state(5):
        _draw()
        expected = [_draw(), _draw()]
    with own_random_state(5):
        _draw()
        found = [_draw()]
        try:
            with own_random_state(6):
                _draw()
                if error:
                    raise error
        except KeyError:
            pass
        found.append(_draw())
    assert found == expected
