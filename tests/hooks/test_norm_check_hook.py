"""The log says which norms a run has, and why it has no SN."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.model import BaseModel
from mmengine.registry import MODELS, DefaultScope
from mmengine.runner import Runner
from torch import nn

from sn_openmmlab import BatchRenorm, SwitchNorm, SyncSwitchNorm
from sn_openmmlab.analysis.norm_changes import NormChange
from sn_openmmlab.hooks import norm_check_hook
from tests.small_run import register, small_config

IMPORT = dict(custom_imports=dict(imports=['sn_openmmlab']))


def _model(**parts: nn.Module) -> nn.Module:
    model = nn.Module()
    for name, part in parts.items():
        model.add_module(name, part)
    return model.train()


def test_line_counts(logged: Callable) -> None:
    model = _model(backbone=nn.Sequential(SwitchNorm(4), SwitchNorm(4)), neck=nn.GroupNorm(1, 4))
    line = 'SN in 2 layers (backbone 2); other norms in 1: GN 1, as neck.'
    assert logged(norm_check_hook.log_norms, model, Config(IMPORT)) == [('INFO', line)]


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
    ((level, text),) = logged(norm_check_hook.log_norms, model, Config(config))
    assert level == 'WARNING'
    assert text.startswith('SN in 0 layers; other norms in 2: BN 2, as backbone.0. A norm_cfg = ')
    for advice in ('in the backbone, the neck and the heads', 'WithNorm', '--norm SN'):
        assert advice in text


def test_config_that_names_brn_and_has_none_is_warned_of(logged: Callable) -> None:
    config = Config(dict(IMPORT, norm_cfg=dict(type='BRN2d')))
    ((level, text),) = logged(norm_check_hook.log_norms, _model(neck=nn.BatchNorm2d(4)), config)
    assert level == 'WARNING'
    assert "A norm_cfg = dict(type='BRN') at the top of a config" in text
    assert '--norm BRN' in text


def test_brn_is_counted_and_no_warning(logged: Callable) -> None:
    config = Config(dict(IMPORT, norm_cfg=dict(type='BRN')))
    model = _model(backbone=nn.Sequential(BatchRenorm(4), BatchRenorm(4)))
    line = 'SN in 0 layers; other norms in 2: BRN 2, as backbone.0.'
    assert logged(norm_check_hook.log_norms, model, config) == [('INFO', line)]


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
    ((level, text),) = logged(norm_check_hook.log_norms, model, config)
    assert level == 'WARNING'
    # ResNet-18 20, FPN two a level, box head four.
    assert text.startswith('SN in 0 layers; other norms in 32: BN 32, as backbone.bn1. A norm_cfg')


@pytest.mark.parametrize('imports', ['sn_openmmlab', ['ours', 'sn_openmmlab']])
def test_config_that_only_imports_the_package_is_warned_of(
    imports: str | list[str], logged: Callable
) -> None:
    config = Config(dict(custom_imports=dict(imports=imports), norm_cfg=dict(type='BN')))
    assert logged(norm_check_hook.log_norms, _model(backbone=nn.BatchNorm2d(4)), config) == [
        (
            'WARNING',
            'SN in 0 layers; other norms in 1: BN 1, as backbone. The config imports '
            "sn_openmmlab, but no norm_cfg in it has the type 'SN' or 'BRN'.",
        )
    ]


@pytest.mark.parametrize(
    'config', [{}, dict(custom_imports=None, model=dict(type='A', part=dict(type=['SN'])))]
)
def test_config_of_another_norm_is_not_warned_of(config: dict, logged: Callable) -> None:
    model = _model(backbone=nn.BatchNorm2d(4))
    line = 'SN in 0 layers; other norms in 1: BN 1, as backbone.'
    assert logged(norm_check_hook.log_norms, model, Config(config)) == [('INFO', line)]


@pytest.mark.parametrize('sync_bn', ['torch', 'mmcv'])
def test_sync_bn_reaches_sn(
    sync_bn: str, logged: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, config = _model(a=SwitchNorm(4), b=SyncSwitchNorm(4)), Config(dict(sync_bn=sync_bn))
    assert logged(norm_check_hook.sync_norms, model, config) == []
    assert type(model.a) is SwitchNorm
    monkeypatch.setattr(norm_check_hook, 'is_distributed', lambda: True)
    assert logged(norm_check_hook.sync_norms, model, Config({})) == []
    assert type(model.a) is SwitchNorm
    model.b.process_group = group = object()
    ((level, text),) = logged(norm_check_hook.sync_norms, model, config)
    assert (level, text) == ('INFO', f'sync_bn={sync_bn!r}: SN became SyncSN in 1 layers.')
    assert type(model.a) is SyncSwitchNorm
    assert model.a.process_group is None
    assert model.b.process_group is group


def test_sync_bn_does_not_reach_brn(logged: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(norm_check_hook, 'is_distributed', lambda: True)
    model = _model(a=BatchRenorm(4), b=nn.BatchNorm2d(4))
    ((level, text),) = logged(norm_check_hook.sync_norms, model, Config(dict(sync_bn='torch')))
    assert level == 'WARNING'
    assert text.startswith("sync_bn='torch' does not act on BRN: in 1 layers each process ")
    assert type(model.a) is BatchRenorm


def test_sync_bn_reaches_the_averaged_weights_of_ema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(monkeypatch)
    hooks = [dict(type='EMAHook'), dict(type='NormCheckHook')]
    runner = Runner.from_cfg(small_config(tmp_path, custom_hooks=hooks, sync_bn='torch'))
    monkeypatch.setattr(norm_check_hook, 'is_distributed', lambda: True)
    runner.call_hook('before_run')
    (ema,) = (hook.ema_model for hook in runner.hooks if hasattr(hook, 'ema_model'))
    for model in (runner.model, ema.module):
        assert type(model.sn) is SyncSwitchNorm


def test_another_norm_that_was_asked_for_is_no_warning(logged: Callable) -> None:
    config = Config(dict(model=dict(type='WithNorm', of='A', norm_cfg=dict(type='GN')), **IMPORT))
    model = _model(neck=nn.GroupNorm(1, 4))
    model.norm_changes = [NormChange('neck', 'BN', 'GN')]
    line = 'SN in 0 layers; other norms in 1: GN 1, as neck.'
    assert logged(norm_check_hook.log_norms, model, config) == [('INFO', line)]


class Net(BaseModel):
    """A model of the user."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = SwitchNorm(4)
        self.norm_eval = True

    def forward(self, x: torch.Tensor, mode: str) -> dict[str, torch.Tensor]:
        return dict(loss=self.norm(x).sum())


def test_hook_of_a_config_works_in_mmengines_own_runner(
    tmp_path: Path, logged: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    # By its name: mmengine 0.10.7 cannot write a config that has a class.
    monkeypatch.setitem(MODELS.module_dict, 'Net', Net)
    config = dict(
        default_scope='mmdet',
        model=dict(type='Net'),
        work_dir=str(tmp_path),
        train_dataloader=dict(
            dataset=[torch.ones(1, 4, 2, 2)],
            batch_size=1,
            sampler=dict(type='DefaultSampler', shuffle=False),
        ),
        train_cfg=dict(by_epoch=True, max_epochs=1),
        optim_wrapper=dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.1)),
        custom_hooks=[dict(type='NormCheckHook')],
        experiment_name='test_hooks',
    )
    runner = Runner.from_cfg(Config(config))
    said = [(level, text.partition('=')[0]) for level, text in logged(runner.train)]
    assert said.count(('INFO', 'SN in 1 layer (norm 1); no other norms.')) == 1
    assert ('WARNING', 'the model has norm_eval') in said
