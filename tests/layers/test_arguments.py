"""Every error about a layer's arguments and inputs: its type, its words, and when it is raised."""

import re

import numpy as np
import pytest
import torch

from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.switch_norm import SwitchNorm

NOT_A_TUPLE = "scopes must be a tuple of names such as ('in', 'ln'), not "
KNOWN = "'in', 'gn', 'ln', 'bn'."

BAD_ARGUMENTS = [
    ({'num_features': 0}, ValueError, 'num_features is 0, but must be at least 1.'),
    ({'num_features': -3}, ValueError, 'num_features is -3, but must be at least 1.'),
    ({'num_features': 8.0}, TypeError, 'num_features must be a whole number, not 8.0.'),
    ({'num_features': '8'}, TypeError, "num_features must be a whole number, not '8'."),
    ({'num_features': None}, TypeError, 'num_features must be a whole number, not None.'),
    ({'num_features': True}, TypeError, 'num_features must be a whole number, not True.'),
    ({'eps': -1e-5}, ValueError, 'eps is -1e-05: it is added to a variance'),
    ({'eps': float('nan')}, ValueError, 'eps is nan: it is added to a variance'),
    ({'eps': float('inf')}, ValueError, 'must be finite and ≥ 0.'),
    ({'eps': '1e-5'}, TypeError, "eps must be a number, not '1e-5'."),
    ({'eps': None}, TypeError, 'eps must be a number, not None.'),
    ({'eps': True}, TypeError, 'eps must be a number, not True.'),
    ({'momentum': 1.5}, ValueError, 'momentum is 1.5, outside [0, 1]'),
    ({'momentum': -0.1}, ValueError, 'momentum is -0.1, outside [0, 1]'),
    ({'momentum': float('nan')}, ValueError, 'it is the share of the new value'),
    ({'momentum': '0.1'}, TypeError, "momentum must be a number or None, not '0.1'."),
    ({'momentum': False}, TypeError, 'momentum must be a number or None, not False.'),
    ({'affine': 'False'}, TypeError, "affine must be True or False, not 'False'."),
    ({'track_running_stats': None}, TypeError, 'must be True or False, not None.'),
    ({'norm_eval': 'False'}, TypeError, "norm_eval must be True or False, not 'False'."),
    ({'scopes': ()}, ValueError, f'scopes is empty: name at least one of {KNOWN}'),
    ({'scopes': ('in', 'xn')}, ValueError, f"unknown scope 'xn': scopes may name {KNOWN}"),
    ({'scopes': ('in', 'IN')}, ValueError, f"unknown scope 'IN': scopes may name {KNOWN}"),
    ({'scopes': (1,)}, ValueError, f'unknown scope 1: scopes may name {KNOWN}'),
    ({'scopes': ['in', ['ln']]}, ValueError, f"unknown scope ['ln']: scopes may name {KNOWN}"),
    ({'scopes': ('ln', 'in', 'ln')}, ValueError, "('ln', 'in', 'ln') names a scope twice"),
    ({'scopes': 'bn'}, TypeError, f"{NOT_A_TUPLE}'bn'."),
    ({'scopes': None}, TypeError, f'{NOT_A_TUPLE}None.'),
    ({'scopes': {'in'}}, TypeError, f"{NOT_A_TUPLE}{{'in'}}."),
    ({'num_groups': 0}, ValueError, 'num_groups is 0, but must be at least 1.'),
    ({'num_groups': -2}, ValueError, 'num_groups is -2, but must be at least 1.'),
    ({'num_groups': 2.0}, TypeError, 'num_groups must be a whole number, not 2.0.'),
    ({'num_groups': True}, TypeError, 'num_groups must be a whole number, not True.'),
    ({'correction': 2}, ValueError, 'correction must be 0 or 1, not 2.'),
    ({'correction': -1}, ValueError, 'correction must be 0 or 1, not -1.'),
    ({'correction': True}, ValueError, 'correction must be 0 or 1, not True.'),
    ({'correction': 1.0}, ValueError, 'correction must be 0 or 1, not 1.0.'),
    ({'correction': '1'}, ValueError, "correction must be 0 or 1, not '1'."),
    ({'correction': None}, ValueError, 'correction must be 0 or 1, not None.'),
]


@pytest.mark.parametrize(('given', 'error', 'words'), BAD_ARGUMENTS)
def test_a_bad_argument_is_refused_at_construction(given, error, words):
    with pytest.raises(error, match=re.escape(words)):
        SwitchNorm(**{'num_features': 8, **given})


@pytest.mark.parametrize(('channels', 'groups'), [(8, 3), (8, 32), (6, 4)])
def test_groups_that_do_not_divide_the_channels_are_refused_at_construction(channels, groups):
    sentence = (
        f"scope 'gn' cannot split {channels} channels into {groups} equal groups: "
        'set num_groups to a divisor of the number of channels.'
    )
    with pytest.raises(ValueError, match=re.escape(sentence)):
        SwitchNorm(channels, scopes=('in', 'gn'), num_groups=groups)


def test_groups_need_not_divide_the_channels_where_no_scope_uses_them():
    layer = SwitchNorm(7, scopes=('in', 'ln', 'bn'), num_groups=32)

    assert torch.isfinite(layer(torch.randn(2, 7, 3, 3))).all()


@pytest.mark.parametrize(
    'good',
    [
        {'eps': 0},
        {'momentum': 0},
        {'momentum': 1},
        {'momentum': None},
        {'scopes': ['bn']},
        {'scopes': ['gn', 'in'], 'num_groups': 8},
        {'num_features': np.int64(8), 'num_groups': np.int64(4), 'scopes': ('gn',)},
        {'eps': np.float32(1e-5), 'momentum': np.float32(0.1)},
    ],
)
def test_the_ends_of_the_ranges_lists_and_numpy_numbers_are_accepted(good):
    layer = SwitchNorm(**{'num_features': 8, **good})

    assert torch.isfinite(layer(torch.randn(2, 8, 3, 3))).all()


@pytest.mark.parametrize(
    ('shape', 'words'),
    [
        ((8,), 'takes inputs of 2 to 5 dimensions, (N, C) to (N, C, D, H, W), but got 1'),
        ((), 'but got 0: shape ().'),
        ((2, 8, 1, 1, 1, 1), 'but got 6: shape (2, 8, 1, 1, 1, 1).'),
        ((2, 7, 3, 3), 'was made for 8 channels, but dimension 1 of the input has 7'),
        ((8, 2), 'has 2: shape (8, 2).'),
        ((8, 4, 4), 'has 4: shape (8, 4, 4).'),
        ((0, 7, 3, 3), 'has 7: shape (0, 7, 3, 3).'),
        ((2, 5, 8), "shape (2, 5, 8). Tokens of a transformer, (N, L, C), need type='LN' there."),
    ],
)
@pytest.mark.parametrize('training', [True, False])
def test_an_input_of_the_wrong_shape_is_refused_before_anything_changes(shape, words, training):
    layer = SwitchNorm(8).train(training)
    before = {name: value.clone() for name, value in layer.state_dict().items()}

    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        layer(torch.randn(shape))

    # The tools print a UsageError as one sentence.
    assert isinstance(caught.value, UsageError)
    assert all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())


@pytest.mark.parametrize('dtype', [torch.int64, torch.uint8, torch.bool, torch.complex64])
def test_an_input_that_is_not_floating_point_is_refused(dtype):
    with pytest.raises(ValueError, match=f'takes floating-point inputs, not {dtype}.'):
        SwitchNorm(8)(torch.zeros(2, 8, 3, 3, dtype=dtype))
