"""Classes of the toolboxes that load by code of their own, or from the old ``pretrained``."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from sn_openmmlab import SwitchNorm
from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.weights.check import check_start
from sn_openmmlab.runs.weights.sources import start_sources

RESNET = dict(depth=50, base_channels=8, num_stages=1, strides=(1,), dilations=(1,))
NETWORKS = {
    'ResNet': ('mmdet', dict(type='ResNet', out_indices=(0,), **RESNET)),
    'DetectoRS_ResNet': ('mmdet', dict(type='DetectoRS_ResNet', out_indices=(0,), **RESNET)),
    'PIDNet': (
        'mmseg',
        dict(type='PIDNet', channels=8, ppm_channels=8, num_stem_blocks=1, num_branch_blocks=1),
    ),
}


def build(name: str, norm: str, **settings: object) -> nn.Module:
    toolbox, cfg = NETWORKS[name]
    pytest.importorskip(f'{toolbox}.models')
    with DefaultScope.overwrite_default_scope(toolbox):
        backbone = MODELS.build({**cfg, 'norm_cfg': dict(type=norm), **settings})
    return nn.ModuleDict({'backbone': backbone})


@pytest.fixture
def save(tmp_path: Path) -> Callable[[nn.Module, bool], str]:
    """Return a function (model, nested) -> the file of its backbone's weights."""

    def write(model: nn.Module, nested: bool) -> str:
        state = model.backbone.state_dict()
        torch.save({'state_dict': state} if nested else state, tmp_path / 'weights.pth')
        return str(tmp_path / 'weights.pth')

    return write


def check(model: nn.Module) -> None:
    check_start(model, Config(dict(model=dict())))


@pytest.mark.parametrize('name', ['DetectoRS_ResNet', 'PIDNet'])
def test_own_code_is_held_to_the_same(name: str, save: Callable) -> None:
    def start(file: str) -> nn.Module:
        return build(name, 'SN', init_cfg=dict(type='Pretrained', checkpoint=file))

    with pytest.raises(UsageError, match=r'cannot start model\.backbone: .*BatchNorm.*convert it'):
        check(start(save(build(name, 'BN'), False)))
    check(start(save(build(name, 'SN'), False)))
    nested = start(save(build(name, 'SN'), True))
    if name == 'PIDNet':
        with pytest.raises(UsageError, match='PIDNet loads with its own code, which leaves 1'):
            check(nested)
    else:
        check(nested)


@pytest.mark.parametrize('name', ['DetectoRS_ResNet', 'PIDNet'])
def test_own_code_is_replaced_where_norms_were(name: str, save: Callable) -> None:
    plain = build(name, 'BN')
    for layer in plain.modules():
        if isinstance(layer, _BatchNorm):
            layer.running_mean.uniform_()
    toolbox, cfg = NETWORKS[name]
    with DefaultScope.overwrite_default_scope(toolbox):
        init = dict(type='Pretrained', checkpoint=save(plain, False))
        of = dict(cfg, init_cfg=init, type='WithNorm', of=f'{toolbox}.{name}')
        model = nn.ModuleDict({'backbone': MODELS.build(of)})
    check(model)
    model.backbone.init_weights()
    for key, layer in model.named_modules():
        if isinstance(layer, SwitchNorm):
            assert layer.running_mean.equal(plain.get_submodule(key).running_mean)
            assert layer.mean_weight.softmax(0)[2].item() == pytest.approx(0.9)


def test_old_name_of_a_start_is_found(save: Callable) -> None:
    file = save(build('ResNet', 'BN'), True)
    model = build('ResNet', 'SN', pretrained=file)
    (source,) = start_sources(model, Config(dict(model=dict())))
    assert (source.place, source.file, source.loader) == ('model.backbone', file, 'mmengine')
    with pytest.raises(UsageError, match=r"write model\.backbone\.init_cfg=dict\(type='SNPretra"):
        check(model)
    absent = build('ResNet', 'SN', pretrained=f'{file}.absent')
    with pytest.raises(UsageError, match='there is no checkpoint file'):
        check(absent)


def test_the_outermost_and_the_last_come_first(save: Callable) -> None:
    model = build('ResNet', 'SN')
    model.init_cfg = dict(type='Pretrained', checkpoint='outer')
    model.backbone.init_cfg = [
        dict(type='Kaiming', layer='Conv2d'),
        dict(type='Pretrained', checkpoint='a'),
        dict(type='SNPretrained', checkpoint='b'),
    ]
    config = Config(dict(model=dict(), load_from='whole'))
    assert [source.file for source in start_sources(model, config)] == ['whole', 'outer', 'b', 'a']
