"""The weights of the toolboxes' ResNets are known, and faults in a file are named."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from sn_openmmlab.checkpoints.plans.batch_norm import plan_batch_norm
from sn_openmmlab.checkpoints.plans.resnet import is_bn_resnet, resnet_depth
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.switch_norm import SwitchNorm

NETWORKS = [
    dict(type='mmdet.ResNet', depth=18),
    dict(type='mmdet.ResNet', depth=34, base_channels=16),
    dict(type='mmdet.ResNet', depth=101),
    dict(type='mmdet.ResNet', depth=152, base_channels=16),
    dict(type='mmdet.ResNeXt', depth=50, groups=32, base_width=4),
    dict(type='mmdet.ResNetV1d', depth=50),
    dict(type='mmseg.ResNetV1c', depth=50, strides=(1, 2, 1, 1), dilations=(1, 1, 2, 4)),
    dict(type='mmseg.ResNetV1d', depth=18),
]


@pytest.fixture(scope='module')
def build() -> Callable[..., nn.Module]:
    """A function (type, **settings) -> a network of a toolbox, which takes no memory."""
    models = {
        'mmdet': pytest.importorskip('mmdet.models'),
        'mmseg': pytest.importorskip('mmseg.models'),
    }

    def make(type: str, **settings: object) -> nn.Module:
        toolbox, kind = type.split('.')
        with torch.device('meta'):
            return getattr(models[toolbox], kind)(**settings)

    return make


def zeros(model: nn.Module) -> dict[str, Tensor]:
    """Return zeros for the weights of a model that takes no memory."""
    return {name: torch.zeros(value.shape) for name, value in model.state_dict().items()}


@pytest.fixture
def resnet18(build: Callable) -> dict[str, Tensor]:
    """The weights of a classifier."""
    weights = zeros(build('mmdet.ResNet', depth=18, base_channels=8))
    return {**weights, 'fc.weight': torch.zeros(10, 64), 'fc.bias': torch.zeros(10)}


@pytest.mark.parametrize('network', NETWORKS, ids=lambda n: f'{n["type"]}-{n["depth"]}')
def test_resnets_of_the_toolboxes_become_those_with_sn(network: dict, build: Callable) -> None:
    weights = zeros(build(**network))
    assert is_bn_resnet(weights)
    assert resnet_depth(weights) == network['depth']
    plan = plan_batch_norm({**weights, 'fc.weight': torch.zeros(1000, 8)})
    plan.check()
    expected = zeros(build(**network, norm_cfg=dict(type='SN')))
    converted = plan.convert()
    assert converted.keys() == expected.keys()
    assert all(value.shape == expected[name].shape for name, value in converted.items())
    assert plan.layout.name == 'resnet-bn'
    assert plan.dropped == ['fc.weight']


RELATIVES = {
    'RegNet': dict(type='mmdet.RegNet', arch='regnetx_400mf'),
    'deformable': dict(
        type='mmdet.ResNet',
        depth=50,
        dcn=dict(type='DCN', deform_groups=1, fallback_on_stride=False),
        stage_with_dcn=(False, True, True, True),
    ),
    'plugin': dict(
        type='mmdet.ResNet',
        depth=50,
        plugins=[dict(cfg=dict(type='ContextBlock', ratio=1 / 16), position='after_conv3')],
    ),
}


@pytest.mark.parametrize('relative', RELATIVES)
def test_networks_like_resnet_keep_their_shapes(relative: str, build: Callable) -> None:
    network = RELATIVES[relative]
    weights = zeros(build(**network))
    plan = plan_batch_norm(weights)
    plan.check()
    assert plan.layout.name == 'bn'
    expected = zeros(build(**network, norm_cfg=dict(type='SN')))
    converted = plan.convert()
    assert converted.keys() == expected.keys()
    assert all(value.shape == expected[name].shape for name, value in converted.items())


@pytest.mark.parametrize('stages', [1, 2, 3])
def test_resnet_may_end_early(stages: int, build: Callable) -> None:
    some = dict(
        num_stages=stages,
        strides=(1, 2, 2)[:stages],
        dilations=(1,) * stages,
        out_indices=(stages - 1,),
    )
    weights = zeros(build('mmdet.ResNet', depth=50, **some))
    plan = plan_batch_norm(weights)
    plan.check()
    assert plan.title == f'a ResNet-50, cut off after stage {stages}, with BatchNorm'
    with_sn = build('mmdet.ResNet', depth=50, **some, norm_cfg=dict(type='SN'))
    assert plan.convert().keys() == with_sn.state_dict().keys()


def test_file_without_counters_is_known(resnet18: dict) -> None:
    old = {name: value for name, value in resnet18.items() if 'num_batches' not in name}
    plan = plan_batch_norm(old)
    plan.check()
    assert plan.title == 'a ResNet-18 with BatchNorm'


@pytest.mark.parametrize(
    ('name', 'becomes'),
    [
        ('conv1.weight', 'conv1.weight'),
        ('bn1.weight', 'sn1.weight'),
        ('layer1.1.conv2.weight', 'layer1.1.conv2.weight'),
        ('layer2.0.bn2.running_var', 'layer2.0.sn2.running_var'),
        ('layer3.0.downsample.0.weight', 'layer3.0.downsample.0.weight'),
        ('layer3.0.downsample.1.bias', 'layer3.0.downsample.1.bias'),
        ('layer4.1.bn1.running_mean', 'layer4.1.sn1.running_mean'),
    ],
)
def test_missing_weight_is_named(name: str, becomes: str, resnet18: dict) -> None:
    del resnet18[name]
    with pytest.raises(UsageError, match=f'a ResNet-18 with BatchNorm, but lacks .*{becomes}'):
        plan_batch_norm(resnet18).check()


def test_missing_stage_is_named(resnet18: dict) -> None:
    cut = {name: value for name, value in resnet18.items() if not name.startswith('layer4')}
    with pytest.raises(UsageError, match=r'lacks layer4\.0\.conv1\.weight'):
        plan_batch_norm(cut).check()


@pytest.mark.parametrize(
    'name', ['layer2.2.conv1.weight', 'layer1.0.bn3.bias', 'layer1.0.conv1.bias', 'neck.weight']
)
def test_unknown_weight_is_named(name: str, resnet18: dict) -> None:
    resnet18[name] = torch.zeros(8, 8, 3, 3)
    with pytest.raises(UsageError, match=f'but also has {name}'):
        plan_batch_norm(resnet18).check()


@pytest.mark.parametrize(
    ('name', 'shape', 'expected'),
    [
        ('bn1.weight', (1, 8, 1, 1), '(8,)'),
        ('layer1.0.conv2.weight', (8, 4, 3, 3), '(8, 8, 3, 3)'),
        ('layer2.0.bn1.running_mean', (9,), '(16,)'),
        ('layer2.0.downsample.0.weight', (8, 8, 1, 1), '(16, 8, 1, 1)'),
        ('layer4.1.conv1.weight', (64, 64), '(512, 64, 3, 3)'),
    ],
)
def test_weight_of_another_shape_is_named(
    name: str, shape: tuple, expected: str, resnet18: dict
) -> None:
    resnet18[name] = torch.zeros(shape)
    with pytest.raises(UsageError) as caught:
        plan_batch_norm(resnet18).check()
    assert f'the shape {shape}, not {expected}, of {name}' in str(caught.value)


def test_pre_activation_resnet_is_refused(resnet18: dict) -> None:
    """Its norms have the channels that go into their convolutions."""
    for part in ('weight', 'bias', 'running_mean', 'running_var'):
        resnet18[f'layer2.0.bn1.{part}'] = torch.zeros(8)
    with pytest.raises(UsageError, match=r'the shape \(8,\), not \(16,\), of layer2\.0\.bn1'):
        plan_batch_norm(resnet18).check()


def test_network_that_begins_like_a_resnet_is_none(build: Callable) -> None:
    channels = [(8,), (8, 16), (8, 16, 32), (8, 16, 32, 64)]
    extra = {
        f'stage{i + 1}': dict(
            num_modules=1,
            num_branches=i + 1,
            block='BOTTLENECK' if i == 0 else 'BASIC',
            num_blocks=(1,) * (i + 1),
            num_channels=widths,
        )
        for i, widths in enumerate(channels)
    }
    weights = zeros(build('mmseg.HRNet', extra=extra))
    plan = plan_batch_norm(weights)
    plan.check()
    with_sn = build('mmseg.HRNet', extra=extra, norm_cfg=dict(type='SN'))
    assert plan.convert().keys() == with_sn.state_dict().keys()
    assert plan.layout.name == 'bn'
    assert any(isinstance(layer, SwitchNorm) for layer in with_sn.modules())
