"""WithNorm builds a toolbox's model and puts one norm in place of others."""

import copy
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.config import Config
from mmengine.model import ExponentialMovingAverage, MMDistributedDataParallel
from mmengine.optim import build_optim_wrapper
from mmengine.registry import MODELS, DefaultScope
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from sn_openmmlab import BatchRenorm, SwitchNorm, SyncSwitchNorm
from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.norm_swap import replace_norms
from tests.segmenter import FCN

# Configs of MMSegmentation of which parts ignore norm_cfg.
DEAF = {
    'BiSeNetV1': '_base_/models/bisenetv1_r18-d32.py',
    'BiSeNetV2': '_base_/models/bisenetv2.py',
    'DDRNet (23-slim)': 'ddrnet/ddrnet_23-slim_in1k-pre_2xb6-120k_cityscapes-1024x1024.py',
    'STDC': '_base_/models/stdc.py',
    'ERFNet': '_base_/models/erfnet_fcn.py',
}
pytestmark = pytest.mark.usefixtures('mmseg_scope')


def _config(name: str) -> Config:
    return Config.fromfile(Path(find_spec('mmseg').origin).parent / '.mim/configs' / DEAF[name])


def _with_norm(of: dict = FCN, **norm_cfg: Any) -> dict:
    norm_cfg = norm_cfg and {'type': 'SN', **norm_cfg}
    return {**of, 'type': 'WithNorm', 'of': of['type'], 'norm_cfg': norm_cfg or None}


def _layers(model: nn.Module, kind: type) -> dict[str, nn.Module]:
    return {name: layer for name, layer in model.named_modules() if isinstance(layer, kind)}


def _name_sn(part: Any) -> None:
    """Set every norm_cfg in a config to SN, as a user would who looks for them all."""
    if isinstance(part, dict):
        if 'norm_cfg' in part:
            part['norm_cfg'] = dict(type='SN')
        for value in part.values():
            _name_sn(value)
    elif isinstance(part, list):
        for item in part:
            _name_sn(item)


@pytest.mark.parametrize('name', DEAF)
def test_model_that_ignores_norm_cfg_is_converted(name: str, repo: Path) -> None:
    config = _config(name)
    plain = MODELS.build(config.model)
    named = copy.deepcopy(config.model)
    _name_sn(named)
    deaf = len(_layers(MODELS.build(named), _BatchNorm))
    page = (repo / 'docs/guides/your_config.md').read_text()
    assert f'\n| {name} | {deaf} of {len(_layers(plain, _BatchNorm))} |\n' in page

    replace_norms(config)
    model = MODELS.build(config.model)
    assert type(model) is type(plain)
    assert not _layers(model, _BatchNorm)
    layers = _layers(model, SwitchNorm)
    assert layers.keys() == _layers(plain, _BatchNorm).keys()
    controls = {f'{name}.{part}' for name in layers for part in ('mean_weight', 'var_weight')}
    assert model.state_dict().keys() == plain.state_dict().keys() | controls
    for layer in layers.values():
        assert layer.mean_weight.equal(torch.ones(3))
        assert layer.var_weight.equal(torch.ones(3))
        assert layer.var_weight.requires_grad


def test_sn_that_is_there_and_instance_norm_stay() -> None:
    of = {**FCN, 'backbone': dict(FCN['backbone'], norm_cfg=dict(type='SN', scopes=['in', 'bn']))}
    heads = dict(
        decode_head=dict(FCN['decode_head'], norm_cfg=dict(type='IN')),
        auxiliary_head=dict(FCN['decode_head'], norm_cfg=dict(type='BN')),
    )
    model = MODELS.build(_with_norm({**of, **heads}, scopes=('ln', 'bn')))
    layers = _layers(model, SwitchNorm)
    assert layers.pop('auxiliary_head.convs.0.bn').scopes == ('ln', 'bn')
    assert len(layers) == 20
    assert {layer.scopes for layer in layers.values()} == {('in', 'bn')}
    assert list(_layers(model, nn.InstanceNorm2d)) == ['decode_head.convs.0.in']
    assert {c.reason for c in model.norm_changes if c.before == 'IN'} == {
        'only BN, SyncBN, GN and SN are replaced'
    }
    assert {c.reason for c in model.norm_changes if c.name.startswith('backbone.')} == {
        'it is SN already, and keeps its options'
    }


@pytest.mark.parametrize(
    ('norm_cfg', 'kind', 'has'),
    [
        (dict(type='GN'), nn.GroupNorm, dict(num_groups=32)),
        (dict(type='GN', num_groups=16), nn.GroupNorm, dict(num_groups=16)),
        (dict(type='BN', eps=0.5), _BatchNorm, dict(eps=0.5)),
        (dict(type='SyncBN'), nn.SyncBatchNorm, {}),
        (dict(type='IN', affine=True), nn.InstanceNorm2d, dict(affine=True)),
        (dict(type='SyncSN', eps=0.5), SyncSwitchNorm, dict(scopes=('in', 'ln', 'bn'))),
        (dict(type='BRN', begin=7, eps=0.5), BatchRenorm, dict(begin=7, eps=0.5)),
        (dict(type='BRN2d'), BatchRenorm, dict(begin=5000, momentum=0.01)),
        (dict(type='SN2d', scopes=('ln', 'bn')), SwitchNorm, dict(scopes=('ln', 'bn'))),
    ],
)
@pytest.mark.parametrize('before', [dict(type='BN'), dict(type='GN', num_groups=8)])
def test_each_norm_takes_the_place_of_another(
    before: dict, norm_cfg: dict, kind: type, has: dict
) -> None:
    of = {**FCN, 'backbone': dict(FCN['backbone'], norm_cfg=dict(before, requires_grad=False))}
    plain = MODELS.build(copy.deepcopy(of))
    model = MODELS.build({**_with_norm(of), 'norm_cfg': norm_cfg, 'norm_parts': ['backbone']})
    replaced = [c.name for c in model.norm_changes if not c.reason]
    if norm_cfg['type'] == before['type']:
        assert replaced == []
        return
    assert len(replaced) == 20
    modules, names = dict(model.named_modules()), [n for n, _ in plain.named_modules()]
    assert [name for name, _ in model.named_modules()] == names
    for layer in (modules[name] for name in replaced):
        assert isinstance(layer, kind)
        assert all(getattr(layer, name) == value for name, value in has.items())
        assert all(p.requires_grad for p in layer.parameters())
    assert model.norm_changes[20].reason == 'not in the chosen parts'
    x = torch.randn(2, 3, 64, 64)
    assert norm_cfg['type'] == 'SyncBN' or torch.isfinite(model.backbone(x)[-1]).all()


def test_layers_are_as_new_ones_of_these_options() -> None:
    options = dict(scopes=('gn', 'bn'), num_groups=4, correction=1, eps=0.5, momentum=None)
    options['num_ratio_groups'] = 2
    (layer, *_) = _layers(MODELS.build(_with_norm(**options)), SwitchNorm).values()
    new = SwitchNorm(64, **options)
    assert repr(layer) == repr(new)
    assert layer.momentum is None
    for name, value in new.state_dict().items():
        assert layer.state_dict()[name].equal(value)


def test_eps_and_momentum_stay_where_none_are_given() -> None:
    of = {
        **FCN,
        'backbone': dict(FCN['backbone'], norm_cfg=dict(type='BN', eps=0.25, momentum=0.5)),
    }
    (layer, *_) = _layers(MODELS.build(_with_norm(of)), SwitchNorm).values()
    assert (layer.eps, layer.momentum) == (0.25, 0.5)


def test_brn_keeps_the_eps_and_the_weights_of_batch_norm(tmp_path: Path) -> None:
    norm_cfg = dict(type='BN', eps=0.25, momentum=0.5)
    of = {**FCN, 'backbone': dict(FCN['backbone'], norm_cfg=norm_cfg)}
    plain = MODELS.build(copy.deepcopy(of)).backbone
    for layer in _layers(plain, _BatchNorm).values():
        nn.init.uniform_(layer.running_mean)
        nn.init.uniform_(layer.running_var, 0.5, 2.0)
    file = tmp_path / 'bn.pth'
    torch.save(dict(state_dict=plain.state_dict()), file)
    of['backbone']['init_cfg'] = dict(type='Pretrained', checkpoint=str(file))

    backbone = MODELS.build(_with_norm(of, type='BRN')).backbone
    backbone.init_weights()

    layers = _layers(backbone, BatchRenorm).values()
    assert len(layers) == 20
    assert {(layer.eps, layer.momentum) for layer in layers} == {(0.25, 0.01)}
    x = torch.randn(2, 3, 32, 32)
    backbone.eval()
    plain.eval()
    assert backbone(x)[-1].equal(plain(x)[-1])


def test_brn_stays_where_sn_takes_the_place_of_others() -> None:
    of = {**FCN, 'decode_head': dict(FCN['decode_head'], norm_cfg=dict(type='BRN'))}
    model = MODELS.build(_with_norm(of))
    (layer,) = _layers(model, BatchRenorm)
    reasons = {c.name: (c.before, c.after, c.reason) for c in model.norm_changes}
    assert reasons[layer] == ('BRN', 'BRN', 'only BN, SyncBN, GN and SN are replaced')


def test_layers_without_bn_keep_no_statistics() -> None:
    model = MODELS.build(_with_norm(scopes=('in', 'ln')))
    (layer, *_) = _layers(model, SwitchNorm).values()
    assert layer.state_dict().keys() == SwitchNorm(64, scopes=('in', 'ln')).state_dict().keys()
    x = torch.randn(2, 64, 3, 3)
    assert layer.eval()(x).equal(SwitchNorm(64, scopes=('in', 'ln')).train()(x))


def test_the_type_says_whether_statistics_are_synchronised() -> None:
    synced = {**FCN, 'backbone': dict(FCN['backbone'], norm_cfg=dict(type='SyncBN'))}
    for config in (_with_norm(type='SyncSN'), _with_norm(synced, type='SyncSN')):
        layers = _layers(MODELS.build(config), SwitchNorm)
        assert {type(layer) for layer in layers.values()} == {SyncSwitchNorm}
    for config in (_with_norm(), _with_norm(synced)):
        layers = _layers(MODELS.build(config), SwitchNorm)
        assert {type(layer) for layer in layers.values()} == {SwitchNorm}


def test_what_was_frozen_stays_frozen() -> None:
    of = {**FCN, 'backbone': dict(FCN['backbone'], frozen_stages=1)}
    for config in (_with_norm(of), _with_norm(of, requires_grad=True)):
        layers = _layers(MODELS.build(config), SwitchNorm)
        frozen = {n for n, layer in layers.items() if not layer.mean_weight.requires_grad}
        assert frozen == {n for n in layers if n == 'backbone.bn1' or '.layer1.' in n}
        assert len(frozen) == 5
        assert not any(layers[name].weight.requires_grad for name in frozen)


def test_frozen_norms_are_trained_unless_the_new_norm_says_otherwise() -> None:
    of = {**FCN, 'backbone': dict(FCN['backbone'], norm_cfg=dict(type='BN', requires_grad=False))}
    for config, trained in (
        (_with_norm(requires_grad=False), False),
        (_with_norm(of), True),
        (_with_norm(of, requires_grad=True), True),
    ):
        layers = _layers(MODELS.build(config), SwitchNorm).values()
        states = {p.requires_grad for layer in layers for p in layer.parameters()}
        assert states == {trained}


def test_norm_eval_holds_the_statistics() -> None:
    model = MODELS.build(_with_norm(norm_eval=True, requires_grad=False)).train()
    before = copy.deepcopy(model.state_dict())
    model.backbone(torch.randn(2, 3, 32, 32))
    assert all(value.equal(model.state_dict()[name]) for name, value in before.items())
    assert not any(layer.training for layer in _layers(model, SwitchNorm).values())
    assert model.backbone.training


def test_optimizer_has_lambda_and_spares_it_decay() -> None:
    model = MODELS.build(_with_norm())
    optimizer = build_optim_wrapper(
        model,
        dict(
            optimizer=dict(type='SGD', lr=0.1, weight_decay=0.5),
            paramwise_cfg=dict(norm_decay_mult=0.0),
        ),
    )
    decays = {
        id(p): group['weight_decay'] for group in optimizer.param_groups for p in group['params']
    }
    for layer in _layers(model, SwitchNorm).values():
        assert [decays[id(p)] for p in layer.parameters()] == [0.0] * 4
    assert decays[id(model.backbone.conv1.weight)] == 0.5


def test_weights_with_batch_norm_start_it(tmp_path: Path) -> None:
    plain = MODELS.build(copy.deepcopy(FCN)).eval()
    for layer in _layers(plain, _BatchNorm).values():
        for value in (layer.weight.data, layer.running_mean, layer.running_var):
            value.uniform_(0.5, 1.5)
    torch.save(plain.state_dict(), tmp_path / 'bn.pth')
    init = dict(
        type='SNPretrained', checkpoint=str(tmp_path / 'bn.pth'), batch_ratio=1.0, strict=False
    )
    model = MODELS.build(dict(_with_norm(), init_cfg=init)).eval()
    model.init_weights()
    x = torch.randn(2, 3, 32, 32)
    for found, expected in zip(model.extract_feat(x), plain.extract_feat(x), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_model_of_a_named_toolbox_is_found() -> None:
    pytest.importorskip('mmdet')
    model = MODELS.build(dict(_with_norm(), of='mmseg.EncoderDecoder'))
    assert type(model).__name__ == 'EncoderDecoder'
    with DefaultScope.overwrite_default_scope('mmdet'):
        detector = MODELS.build(
            dict(
                type='WithNorm',
                of='RetinaNet',
                backbone=dict(type='ResNet', depth=18, norm_eval=False),
                neck=dict(
                    type='FPN',
                    in_channels=[64, 128, 256, 512],
                    out_channels=8,
                    num_outs=5,
                    norm_cfg=dict(type='BN'),
                ),
                bbox_head=dict(type='RetinaHead', num_classes=2, in_channels=8, feat_channels=8),
            )
        )
    assert type(detector).__name__ == 'RetinaNet'
    assert not _layers(detector, _BatchNorm)
    # ResNet-18: the stem, two in each of eight blocks, three on shortcuts; FPN: two a level.
    names = _layers(detector, SwitchNorm)
    assert sum(name.startswith('backbone') for name in names) == 20
    assert sum(name.startswith('neck') for name in names) == 2 * 4


@pytest.mark.parametrize(
    ('changes', 'reason'),
    [
        (dict(of=None), r"needs the type of the model, as in of='EncoderDecoder'\.$"),
        (dict(of='Encoder'), r'finds no model Encoder in mmseg: correct of, or name its toolbox'),
        (
            dict(norm_cfg=dict(type='NoNorm')),
            "^'NoNorm' is no norm that can take the place of others: name one of SN, SyncSN, BN, ",
        ),
        (
            dict(norm_cfg=dict(type='SN', affine=True, x=1)),
            'has affine, x, but SN in place of another ',
        ),
        (dict(norm_cfg=dict(type='SN', scopes='in')), 'the norm_cfg does not fit SN: scopes must'),
        (dict(norm_cfg=dict(type='SN', eps=-1)), 'does not fit SN: eps is -1'),
        (dict(norm_cfg=dict(type='SN', norm_eval='False')), 'norm_eval must be True or False'),
        (dict(norm_cfg=dict(type='SN', requires_grad='')), 'requires_grad must be True or'),
        (dict(norm_cfg=dict(type='SN', momentum=2)), 'does not fit SN: momentum is 2'),
        (
            dict(norm_cfg=dict(type='SN', correction=2)),
            'of backbone.bn1, which has 64 channels: correction must',
        ),
        (dict(norm_cfg=dict(type='SN', scopes=['gn'], num_groups=7)), 'cannot split 64 channels'),
        (
            dict(norm_cfg=dict(type='SN', num_ratio_groups=7)),
            'which has 64 channels: 64 channels do not split into 7 equal groups .*: set num_ratio',
        ),
        (dict(norm_cfg=dict(type='GN', num_groups=7)), 'of backbone.bn1, which has 64 channels: '),
        (dict(norm_parts=['neck']), 'no norm layers in neck: its parts with norms are backbone, d'),
        (
            dict(decode_head=dict(FCN['decode_head'], norm_cfg=None), norm_parts=['decode_head']),
            'EncoderDecoder has no norm layers in decode_head: its parts with norms are backbone',
        ),
        (
            dict(backbone=dict(FCN['backbone'], norm_cfg=dict(type='IN')), norm_parts=['backbone']),
            'has no BN, SyncBN or GN that could become SN, but .*IN .only BN, ',
        ),
    ],
)
def test_mistake_is_one_sentence(changes: dict, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as caught:
        MODELS.build({**_with_norm(), **changes})
    assert '\n' not in str(caught.value)


class Averaged(nn.Module):
    """A model with a moving average of itself, as BYOL and MoCo have."""

    def __init__(self) -> None:
        super().__init__()
        self.net = Tiny(4)
        self.average = ExponentialMovingAverage(self.net)


def test_the_norms_of_a_moving_average_are_replaced_too() -> None:
    model = MODELS.build(dict(type='WithNorm', of=Averaged))
    assert set(_layers(model, SwitchNorm)) == {'net.1', 'average.module.1'}
    assert not any(weight.requires_grad for weight in model.average.parameters())
    model.net[1].mean_weight.data.fill_(2)
    model.average.update_parameters(model.net)
    assert model.average.module[1].mean_weight.equal(torch.full((3,), 2.0))


def test_sync_bn_of_mmcv_is_replaced_without_a_group_of_processes() -> None:
    of = {**FCN, 'backbone': dict(FCN['backbone'], norm_cfg=dict(type='MMSyncBN'))}
    model = MODELS.build(_with_norm(of))
    # a ResNet-18 has 20 norms, the head has a GroupNorm
    assert len(_layers(model, SwitchNorm)) == 21
    assert [change.before for change in model.norm_changes].count('SyncBN') == 20


class Tiny(nn.Sequential):
    """A model that takes no toolbox, so that ranks start soon."""

    def __init__(self, channels: int) -> None:
        super().__init__(nn.Conv2d(3, channels, 1), nn.BatchNorm2d(channels), nn.ReLU())


def on_rank(rank: int, world: int) -> dict[str, torch.Tensor]:
    """Gradients of a converted model of which each rank saw another batch."""
    torch.manual_seed(0)
    model = MODELS.build(dict(type='WithNorm', of=Tiny, channels=4))
    wrapped = MMDistributedDataParallel(model, device_ids=None)
    wrapped(torch.randn(2 * world, 3, 4, 4)[rank::world]).square().mean().backward()
    return {name: p.grad for name, p in model.named_parameters()}


def test_ranks_share_the_gradients_of_lambda(run_ranks: Callable) -> None:
    first, second = run_ranks(__file__, 2)
    assert all(first[name].equal(second[name]) for name in first)
    assert first['1.mean_weight'].any()
    assert first['1.var_weight'].any()
