"""What the op refuses: one sentence each, whichever backend would run."""

import pytest
import torch

from sn_openmmlab.ops.switch_norm import switch_norm

SCOPES = ('in', 'ln', 'bn')


def _call(x=None, weight=None, controls=(3, 3), scopes=SCOPES):
    x = torch.randn(2, 4, 3, 3) if x is None else x
    mean_weight, var_weight = (torch.ones(size) for size in controls)
    options = {'scopes': scopes, 'num_groups': 2, 'correction': 0, 'eps': 1e-5}
    return switch_norm(x, weight, weight, mean_weight, var_weight, **options)


@pytest.mark.parametrize(
    ('arguments', 'reason'),
    [
        ({'x': torch.randn(4)}, r'\(N, C, \*\), not torch.float32 of shape \(4,\)'),
        ({'x': torch.ones(2, 4, dtype=torch.int64)}, 'not torch.int64'),
        ({'scopes': 'bn'}, "not 'bn'"),
        ({'scopes': ()}, r'not \(\)'),
        ({'scopes': ('in', 'foo', 'bn')}, "not .*'foo'"),
        ({'controls': (2, 3)}, r'mean_weight must .* each of the 3 scopes, .* \(2,\)'),
        ({'controls': (3, 5)}, r'var_weight must .* \(5,\)'),
        ({'weight': torch.ones(1)}, r'weight must .* each of the 4 channels .* \(1,\)'),
    ],
)
def test_what_does_not_fit_is_refused_with_one_sentence(arguments, reason):
    with pytest.raises(ValueError, match=reason) as error:
        _call(**arguments)

    message = str(error.value)
    assert message.endswith('.') and '. ' not in message and '\n' not in message


def test_what_fits_is_not():
    y, observed = _call(weight=torch.ones(4))

    assert y.shape == (2, 4, 3, 3) and observed.samples == 2
