"""Settings that act on BatchNorm but not on SN and BRN are warned of."""

from collections.abc import Callable

import pytest
from mmengine.config import Config
from torch import nn

from sn_openmmlab import BatchRenorm, SwitchNorm, SyncSwitchNorm
from sn_openmmlab.hooks import norm_warnings


class Part(nn.Sequential):
    """A part of a model with norm_eval, as the toolboxes' ResNet."""

    def __init__(self, *layers: nn.Module, norm_eval: bool = True, frozen: int = 0) -> None:
        super().__init__(*layers)
        self.norm_eval = norm_eval
        self.frozen = frozen

    def train(self, mode: bool = True) -> 'Part':
        super().train(mode)
        for layer in self[: self.frozen]:
            layer.eval().requires_grad_(False)
        return self


def _model(**parts: nn.Module) -> nn.Module:
    model = nn.Module()
    for name, part in parts.items():
        model.add_module(name, part)
    return model.train()


def test_norm_eval_does_not_reach_sn(logged: Callable) -> None:
    part = Part(SwitchNorm(4), SwitchNorm(4), SwitchNorm(4, scopes=('in', 'ln')))
    ((level, text),) = logged(norm_warnings.warn_of_norm_eval, _model(backbone=part))
    assert level == 'WARNING'
    assert text == (
        'backbone has norm_eval=True, which acts on BatchNorm only: 2 SN layers in it keep '
        'updating their running statistics. To hold them, set norm_eval=True in the norm_cfg of '
        'SN. To let them update, set norm_eval=False in backbone.'
    )


def test_norm_eval_does_not_reach_brn(logged: Callable) -> None:
    part = Part(BatchRenorm(4), SwitchNorm(4), BatchRenorm(4), BatchRenorm(4, momentum=0.0))
    _, (level, text) = logged(norm_warnings.warn_of_norm_eval, _model(backbone=part))
    assert level == 'WARNING'
    assert text == (
        'backbone has norm_eval=True, which acts on BatchNorm only: 2 BRN layers in it keep '
        'updating their running statistics. To hold them, name BN in the norm_cfg, which loads the '
        'same weights. To let them update, set norm_eval=False in backbone.'
    )


def test_frozen_norms_are_warned_of_with_emphasis(logged: Callable) -> None:
    part = Part(SwitchNorm(4), nn.Conv2d(4, 4, 1)).requires_grad_(False)
    ((level, text),) = logged(norm_warnings.warn_of_norm_eval, _model(backbone=part))
    assert level == 'WARNING'
    assert text.startswith('backbone freezes its norms and has norm_eval=True, which acts on ')
    assert 'They are NOT frozen as BatchNorm would be. To hold them, set norm_eval=True' in text


@pytest.mark.parametrize(
    'part',
    [
        Part(SwitchNorm(4), norm_eval=False),
        Part(nn.BatchNorm2d(4)),
        Part(SwitchNorm(4), SwitchNorm(4), nn.Conv2d(4, 4, 1), frozen=2),
        Part(SwitchNorm(4, scopes=('in', 'ln')), SwitchNorm(4, momentum=0.0)),
    ],
    ids=['off', 'bn', 'frozen_stages', 'nothing_moves'],
)
def test_no_warning_of_norm_eval_where_it_holds(part: Part, logged: Callable) -> None:
    assert logged(norm_warnings.warn_of_norm_eval, _model(backbone=part, neck=SwitchNorm(4))) == []


def test_each_part_is_warned_of_once(logged: Callable) -> None:
    head = _model(shared_head=Part(SwitchNorm(4)))
    model = _model(module=_model(backbone=Part(Part(SwitchNorm(4))), roi_head=head))
    texts = [text for _, text in logged(norm_warnings.warn_of_norm_eval, model)]
    assert [text.split()[0] for text in texts] == ['backbone', 'roi_head.shared_head']


@pytest.mark.parametrize(
    'wrapper',
    [
        dict(type='OptimWrapper', accumulative_counts=4),
        dict(constructor='Two', generator=dict(accumulative_counts=4), critic=dict(type='A')),
    ],
)
def test_accumulation_is_warned_of(wrapper: dict, logged: Callable) -> None:
    model = _model(a=SwitchNorm(4), b=SyncSwitchNorm(4), c=SwitchNorm(4, scopes=('in', 'ln')))
    config = Config(dict(optim_wrapper=wrapper))
    ((level, text),) = logged(norm_warnings.warn_of_accumulation, model, config)
    assert level == 'WARNING'
    assert text.startswith('accumulative_counts=4 adds up the gradients of 4 batches, but ')
    assert 'the bn of 2 SN layers takes its statistics from each batch alone' in text
    assert "scopes=('in', 'ln')" in text
    model.eval()
    assert logged(norm_warnings.warn_of_accumulation, model, config) == []


def test_accumulation_with_brn_is_warned_of(logged: Callable) -> None:
    config = Config(dict(optim_wrapper=dict(accumulative_counts=2)))
    ((level, text),) = logged(
        norm_warnings.warn_of_accumulation, _model(a=BatchRenorm(4), b=BatchRenorm(4)), config
    )
    assert level == 'WARNING'
    assert text == (
        'accumulative_counts=2 adds up the gradients of 2 batches, but 2 BRN layers take their '
        'statistics from each batch alone and count each one in begin, r_end and d_end.'
    )


@pytest.mark.parametrize(
    ('seen', 'iterations', 'warned'), [(0, 7, True), (5, 2, True), (5, 3, False)]
)
def test_a_training_that_ends_before_the_correction_begins_is_warned_of(
    seen: int, iterations: int, warned: bool, logged: Callable
) -> None:
    model = _model(a=BatchRenorm(4, begin=7), b=SwitchNorm(4))
    model.a.num_batches_tracked.fill_(seen)
    found = logged(norm_warnings.warn_of_schedule, model, iterations)
    text = (
        '1 BRN layers will be BatchNorm throughout: they do without a correction for the first 7 '
        f'batches, and the training ends after {iterations}. Set begin, r_end and d_end in the '
        'norm_cfg of BRN to fit the training.'
    )
    assert found == ([('WARNING', text)] if warned else [])
    assert logged(norm_warnings.warn_of_schedule, model.eval(), iterations) == []


@pytest.mark.parametrize(
    'config',
    [
        {},
        dict(optim_wrapper=None),
        dict(optim_wrapper=dict(type='OptimWrapper')),
        dict(optim_wrapper=dict(accumulative_counts=1)),
    ],
)
def test_single_steps_are_not_warned_of(config: dict, logged: Callable) -> None:
    assert logged(norm_warnings.warn_of_accumulation, _model(a=SwitchNorm(4)), Config(config)) == []
