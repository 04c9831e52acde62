"""The op refuses bad arguments with one sentence each, whichever backend would run."""

import pytest
import torch

from sn_openmmlab.ops.switch_norm import switch_norm

SCOPES = ('in', 'ln', 'bn')


def _call(x=None, weight=None, controls=(3, 3), scopes=SCOPES, num_groups=2):
    x = torch.randn(2, 4, 3, 3) if x is None else x
    mean_weight, var_weight = (torch.ones(size) for size in controls)
    options = {'scopes': scopes, 'num_groups': num_groups, 'correction': 0, 'eps': 1e-5}
    return switch_norm(x, weight, weight, mean_weight, var_weight, **options)


@pytest.mark.parametrize(
    ('arguments', 'reason'),
    [
        ({'x': torch.randn(4)}, r'2 to 5 dimensions, .* but got 1: shape \(4,\)'),
        ({'x': torch.ones(1, 2, 1, 1, 1, 1)}, 'but got 6: shape'),
        ({'x': torch.ones(2, 4, dtype=torch.int64)}, 'not torch.int64'),
        ({'scopes': 'bn'}, "scopes must be a tuple of names .* not 'bn'"),
        ({'scopes': ()}, 'scopes is empty'),
        ({'scopes': ('in', 'foo', 'bn')}, "unknown scope 'foo'"),
        ({'scopes': ('in', 'bn', 'in')}, 'names a scope twice'),
        ({'scopes': ('in', 'ln', 'gn'), 'num_groups': 3}, 'cannot split 4 channels into 3 equal'),
        ({'controls': (2, 3)}, r'mean_weight must .* each of the 3 scopes, .* \(2,\)'),
        ({'controls': (3, 5)}, r'var_weight must .* \(5,\)'),
        ({'weight': torch.ones(1)}, r'weight must .* each of the 4 channels .* \(1,\)'),
    ],
)
def test_bad_arguments_are_refused_with_one_sentence(arguments, reason):
    with pytest.raises((ValueError, TypeError), match=reason) as error:
        _call(**arguments)

    message = str(error.value)
    assert message.endswith('.') and '. ' not in message and '\n' not in message


def test_good_arguments_are_accepted():
    y, observed = _call(weight=torch.ones(4))

    assert y.shape == (2, 4, 3, 3) and observed.samples == 2
