"""The log says which norms a run has, and what does not do what it seems to."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.registry import MODELS, DefaultScope
from torch import nn

from sn_openmmlab import SwitchNorm, SyncSwitchNorm
from sn_openmmlab.hooks import norm_check_hook as norms

IMPORT = dict(custom_imports=dict(imports=['sn_openmmlab']))


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


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[..., list[tuple[str, str]]]:
    """A function that calls another and returns what mmengine logged: levels and messages."""
    logger = MMLogger.get_instance('test_norms')
    logger.addHandler(caplog.handler)

    def call(function: Callable[..., None], *args: Any) -> list[tuple[str, str]]:
        caplog.clear()
        function(*args)
        return [(record.levelname, record.getMessage()) for record in caplog.records]

    yield call
    logger.removeHandler(caplog.handler)


def test_line_counts(logged: Callable) -> None:
    model = _model(backbone=nn.Sequential(SwitchNorm(4), SwitchNorm(4)), neck=nn.GroupNorm(1, 4))
    line = 'SN in 2 layers (backbone 2); other norms in 1: GN 1, as neck.'
    assert logged(norms.say_norms, model, Config(IMPORT)) == [('INFO', line)]


@pytest.mark.parametrize(
    'config',
    [
        dict(IMPORT, norm_cfg=dict(type='SN')),
        dict(norm_cfg=dict(type='SN')),
        dict(model=dict(heads=[dict(norm_cfg=dict(type='SyncSN'))])),
        dict(model=dict(norm_cfg=dict(type=SwitchNorm))),
    ],
)
def test_config_that_names_sn_and_has_none_is_warned_of(config: dict, logged: Callable) -> None:
    model = _model(backbone=nn.Sequential(nn.BatchNorm2d(4), nn.BatchNorm2d(4)))
    ((level, text),) = logged(norms.say_norms, model, Config(config))
    assert level == 'WARNING'
    assert text.startswith('SN in 0 layers; other norms in 2: BN 2, as backbone.0. A norm_cfg = ')
    for advice in ('in the backbone, the neck and the heads', 'WithSN', '--convert-norms'):
        assert advice in text


def test_child_whose_norm_cfg_reaches_no_part_is_warned_of(
    repo: Path, tmp_path: Path, logged: Callable
) -> None:
    child = tmp_path / 'child.py'
    base = repo / 'configs/demo/faster-rcnn_r18_fpn_bn-all_digits.py'
    child.write_text(f"_base_ = '{base}'\nnorm_cfg = dict(type='SN')\n")
    config = Config.fromfile(child)
    assert config.norm_cfg.type == 'SN'
    with DefaultScope.overwrite_default_scope('mmdet'):
        model = MODELS.build(config.model)
    ((level, text),) = logged(norms.say_norms, model, config)
    assert level == 'WARNING'
    # ResNet-18 20, FPN two a level, box head four.
    assert text.startswith('SN in 0 layers; other norms in 32: BN 32, as backbone.bn1. A norm_cfg')


@pytest.mark.parametrize('imports', ['sn_openmmlab', ['ours', 'sn_openmmlab']])
def test_config_that_only_imports_the_package_is_warned_of(
    imports: str | list[str], logged: Callable
) -> None:
    config = Config(dict(custom_imports=dict(imports=imports), norm_cfg=dict(type='BN')))
    assert logged(norms.say_norms, _model(backbone=nn.BatchNorm2d(4)), config) == [
        (
            'WARNING',
            'SN in 0 layers; other norms in 1: BN 1, as backbone. The config imports '
            "sn_openmmlab, but no norm_cfg in it names the type 'SN'.",
        )
    ]


@pytest.mark.parametrize(
    'config', [{}, dict(custom_imports=None, model=dict(type='A', part=dict(type=['SN'])))]
)
def test_config_of_another_norm_is_not_warned_of(config: dict, logged: Callable) -> None:
    model = _model(backbone=nn.BatchNorm2d(4))
    line = 'SN in 0 layers; other norms in 1: BN 1, as backbone.'
    assert logged(norms.say_norms, model, Config(config)) == [('INFO', line)]


@pytest.mark.parametrize('sync_bn', ['torch', 'mmcv'])
def test_sync_bn_reaches_sn(
    sync_bn: str, logged: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, config = _model(a=SwitchNorm(4), b=SyncSwitchNorm(4)), Config(dict(sync_bn=sync_bn))
    assert logged(norms.sync_norms, model, config) == []
    assert type(model.a) is SwitchNorm
    monkeypatch.setattr(norms, 'is_distributed', lambda: True)
    assert logged(norms.sync_norms, model, Config({})) == []
    assert type(model.a) is SwitchNorm
    model.b.process_group = group = object()
    ((level, text),) = logged(norms.sync_norms, model, config)
    assert (level, text) == ('INFO', f'sync_bn={sync_bn!r}: SN became SyncSN in 1 layers.')
    assert type(model.a) is SyncSwitchNorm
    assert model.a.process_group is None
    assert model.b.process_group is group


def test_norm_eval_does_not_reach_sn(logged: Callable) -> None:
    part = Part(SwitchNorm(4), SwitchNorm(4), SwitchNorm(4, scopes=('in', 'ln')))
    ((level, text),) = logged(norms.warn_of_norm_eval, _model(backbone=part))
    assert level == 'WARNING'
    assert text == (
        'backbone has norm_eval=True, which reaches BatchNorm only: the running statistics of 2 '
        'SN layers in it go on moving. To hold them, set norm_eval=True in the norm_cfg of SN. To '
        'let them move, set norm_eval=False in backbone.'
    )


def test_frozen_norms_are_warned_of_with_emphasis(logged: Callable) -> None:
    part = Part(SwitchNorm(4), nn.Conv2d(4, 4, 1)).requires_grad_(False)
    ((level, text),) = logged(norms.warn_of_norm_eval, _model(backbone=part))
    assert level == 'WARNING'
    assert text.startswith('backbone freezes its norms and has norm_eval=True, which reaches ')
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
    assert logged(norms.warn_of_norm_eval, _model(backbone=part, neck=SwitchNorm(4))) == []


def test_each_part_is_warned_of_once(logged: Callable) -> None:
    head = _model(shared_head=Part(SwitchNorm(4)))
    model = _model(module=_model(backbone=Part(Part(SwitchNorm(4))), roi_head=head))
    texts = [text for _, text in logged(norms.warn_of_norm_eval, model)]
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
    ((level, text),) = logged(norms.warn_of_accumulation, model, config)
    assert level == 'WARNING'
    assert text.startswith('accumulative_counts=4: gradients are added up over 4 batches, but ')
    assert 'the bn of 2 SN layers takes the statistics of each batch alone' in text
    assert "scopes=('in', 'ln')" in text
    model.eval()
    assert logged(norms.warn_of_accumulation, model, config) == []


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
    assert logged(norms.warn_of_accumulation, _model(a=SwitchNorm(4)), Config(config)) == []


def test_conversion_that_finds_no_batch_norm_is_a_warning(logged: Callable) -> None:
    config = Config(dict(model=dict(type='WithSN', of='A', norm_cfg=dict(type='SN')), **IMPORT))
    ((level, said),) = logged(norms.say_norms, _model(neck=nn.GroupNorm(1, 4)), config)
    assert level == 'WARNING'
    assert said.startswith('SN in 0 layers; other norms in 1: GN 1, as neck. WithSN, and so')
    assert 'there is none in this model' in said
