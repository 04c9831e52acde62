"""The layer with `correction=1` against the authors' published code, run once in float64."""

from pathlib import Path

import pytest
import torch

from sn_openmmlab.layers.switch_norm import SwitchNorm

PATH = Path(__file__).parents[1] / 'data' / 'switch_norm_2d.pt'
CASES = torch.load(PATH, weights_only=True)
EXACT = {'rtol': 1e-9, 'atol': 1e-9}


def _name(case):
    mode = 'train' if case['training'] else 'eval'
    scopes = 'bn' if case['using_bn'] else '8x1'
    return '-'.join([mode, scopes, 'x'.join(map(str, case['shape']))])


def _layer(case):
    layer = SwitchNorm(
        case['shape'][1],
        eps=case['eps'],
        momentum=1 - case['momentum_kept'],
        scopes=('in', 'ln', 'bn') if case['using_bn'] else ('in', 'ln'),
        correction=1,
        dtype=torch.float64,
    )
    layer.load_state_dict(_flat(case['state_before']), strict=True)
    return layer.train(case['training'])


def _flat(tables):
    """Return their (1, C, 1, 1) tables as our (C,)."""
    return {name: table.flatten() for name, table in tables.items()}


def test_there_are_twelve_cases_of_every_kind():
    kinds = {(case['shape'], case['using_bn'], case['training']) for case in CASES}

    assert len(CASES) == len(kinds) == 12


@pytest.mark.parametrize('case', CASES, ids=_name)
def test_output_and_gradients_are_theirs(case, outcome):
    found = outcome(_layer(case), case['x'], case['grad_out'])

    expected = {'y': case['y'], 'x': case['grad_x'], **_flat(case['grads'])}
    torch.testing.assert_close(found, expected, **EXACT)


@pytest.mark.parametrize('case', CASES, ids=_name)
def test_the_state_after_is_theirs(case):
    layer = _layer(case)

    layer(case['x'])

    state = layer.state_dict()
    batches = state.pop('num_batches_tracked', None)  # theirs does not count
    torch.testing.assert_close(dict(state), _flat(case['state_after']), **EXACT)
    assert batches == (int(case['training']) if case['using_bn'] else None)
