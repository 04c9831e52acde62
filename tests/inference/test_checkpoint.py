"""What becomes of a checkpoint that gets new running statistics: those alone, and a note."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from sn_openmmlab import SwitchNorm
from sn_openmmlab.errors import UsageError
from sn_openmmlab.inference.averaging import Averaged
from sn_openmmlab.inference.checkpoint import record_average, with_statistics

MEAN, VAR = torch.tensor([3.0, 1.0, 1.0]), torch.tensor([4.0, 2.0, 8.0])


@pytest.fixture
def model() -> nn.Sequential:
    """Return a model whose second layer was averaged; its eps counts for nothing."""
    model = nn.Sequential(SwitchNorm(3), SwitchNorm(3, eps=0.0))
    model[1].running_mean.copy_(MEAN)
    model[1].running_var.copy_(VAR)
    return model


def _as_saved(**others: Any) -> dict[str, Any]:
    state = nn.Sequential(SwitchNorm(3), SwitchNorm(3)).state_dict()
    return dict(state_dict=state, **others)


def test_only_the_statistics_change(model: nn.Sequential) -> None:
    ema = {'module.1.running_mean': torch.zeros(3)}
    old = _as_saved(optimizer=dict(lr=1), message_hub={}, ema_state_dict=ema, meta=dict(epoch=3))
    before = copy.deepcopy(old)
    new, _ = with_statistics(old, model, ['1'])
    torch.testing.assert_close(old, before, rtol=0, atol=0)
    assert new['state_dict']._metadata == old['state_dict']._metadata
    expected = {**old['state_dict'], '1.running_mean': MEAN, '1.running_var': VAR}
    torch.testing.assert_close(dict(new.pop('state_dict')), expected, rtol=0, atol=0)
    del old['state_dict']
    assert new == old


@pytest.mark.parametrize(
    'wrap',
    [
        lambda state: {'state_dict': {f'module.{name}': x for name, x in state.items()}},
        lambda state: {'state_dict': {name: x.half() for name, x in state.items()}},
        lambda state: state,
    ],
    ids=['wrapped for distribution', 'half precision', 'bare'],
)
def test_names_and_types_of_the_file_stay(wrap: Callable, model: nn.Sequential) -> None:
    old = wrap(_as_saved()['state_dict'])
    new, _ = with_statistics(old, model, ['1'])
    state = old.get('state_dict', old)
    assert list(new) == ['state_dict']
    assert {n: x.dtype for n, x in new['state_dict'].items()} == {
        n: x.dtype for n, x in state.items()
    }
    (name,) = (name for name in state if name.endswith('1.running_var'))
    assert torch.equal(new['state_dict'][name].float(), VAR)


def test_how_far_they_moved_is_the_median_over_channels(model: nn.Sequential) -> None:
    """Before, the means are 0 and the variances 1."""
    _, moved = with_statistics(_as_saved(), model, ['1'])
    assert moved == (1.0, 3.0, 3)


def test_other_names_are_an_error_in_one_sentence(model: nn.Sequential) -> None:
    old = {'state_dict': {'backbone.1.running_mean': torch.zeros(3)}}
    with pytest.raises(UsageError, match=r'^the checkpoint holds no 1\.running_mean, where .*\.$'):
        with_statistics(old, model, ['1'])


@pytest.mark.parametrize('meta', [dict(epoch=3), None])
def test_the_note_says_what_they_were_made_of(meta: dict | None) -> None:
    checkpoint = dict(meta=meta)
    record_average(checkpoint, '/somewhere/file.pth', Averaged(['a', 'b'], 5, 10), 'pooled', True)
    note = checkpoint['meta'].pop('batch_average')
    assert checkpoint['meta'] == (meta or {})
    assert note.pop('tool').startswith('sn_openmmlab ')
    assert note == dict(
        source='file.pth', layers=2, batches=5, images=10, variance='pooled', batch_norm=True
    )
