"""The layer's gradients against finite differences, for every set of scopes, in float64."""

from itertools import combinations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call

from sn_openmmlab.layers.switch_norm import SwitchNorm

SCOPES = ('in', 'gn', 'ln', 'bn')
SUBSETS = [scopes for size in range(1, 5) for scopes in combinations(SCOPES, size)]
ORDERS = [('bn', 'ln', 'gn', 'in'), ('ln', 'bn', 'in'), ('bn', 'in'), ('gn', 'bn', 'ln')]


def _function_and_inputs(randomized, scopes, training, correction=0, shape=(2, 4, 3), **options):
    layer = SwitchNorm(
        4,
        eps=0.1,  # so that finite differences stay accurate where a variance is small
        scopes=scopes,
        num_groups=2,
        correction=correction,
        dtype=torch.float64,
        **options,
    )
    randomized(layer).train(training)
    names, parameters = zip(*layer.named_parameters(), strict=True)
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)

    def function(x, *values):
        return functional_call(layer, dict(zip(names, values, strict=True)), (x,))

    return function, (x, *parameters)


@pytest.mark.parametrize('training', [True, False], ids=['train', 'eval'])
@pytest.mark.parametrize('correction', [0, 1])
@pytest.mark.parametrize('scopes', SUBSETS + ORDERS, ids='-'.join)
def test_all_gradients_for_every_set_of_scopes(scopes, correction, training, randomized):
    assert gradcheck(*_function_and_inputs(randomized, scopes, training, correction))


@pytest.mark.parametrize('training', [True, False], ids=['train', 'eval'])
@pytest.mark.parametrize(
    'shape', [(3, 4), (1, 4), (2, 4, 1), (2, 4, 1, 2), (1, 4, 1, 2, 1), (1, 4, 1, 1, 1)]
)
def test_all_gradients_for_every_number_of_dimensions(shape, training, randomized):
    assert gradcheck(*_function_and_inputs(randomized, SCOPES, training, shape=shape))


@pytest.mark.parametrize('options', [{'affine': False}, {'track_running_stats': False}])
def test_all_gradients_without_affine_and_without_tracking(options, randomized):
    assert gradcheck(*_function_and_inputs(randomized, SCOPES, False, **options))


def test_second_derivatives(randomized):
    assert gradgradcheck(*_function_and_inputs(randomized, SCOPES, True, shape=(2, 4, 2)))
