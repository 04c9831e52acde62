"""SNPretrained on the toolboxes' networks: they compute what they computed before."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from mmengine.registry import MODELS, DefaultScope
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.convert.from_batch_norm import convert_batch_norm
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.runs.config import read_config

SN = dict(type='SN')
# The width of the authors' networks.
WIDE = dict(base_channels=64)
BRANCHES = [(16,), (4, 8), (4, 8, 16), (4, 8, 16, 32)]
HRNET = {
    f'stage{i + 1}': dict(
        num_modules=1,
        num_branches=len(widths),
        block='BOTTLENECK' if i == 0 else 'BASIC',
        num_blocks=(1,) * len(widths),
        num_channels=widths,
    )
    for i, widths in enumerate(BRANCHES)
}
NETWORKS = {
    'ResNet-18': ('mmdet', dict(type='ResNet', depth=18)),
    'ResNet-50': ('mmdet', dict(type='ResNet', depth=50, base_channels=16)),
    'MobileNetV2': ('mmseg', dict(type='MobileNetV2')),
    'HRNet': ('mmseg', dict(type='HRNet', extra=HRNET)),
}


class Mix(nn.Module):
    """What SN of in, ln and bn computes in evaluation, with a given ratio of bn."""

    def __init__(self, norm: _BatchNorm, ratio: float) -> None:
        super().__init__()
        self.norm, self.ratio = norm, ratio

    def forward(self, x: Tensor) -> Tensor:
        ratio, rest = self.ratio, (1 - self.ratio) / 2
        norm, shape = self.norm, (1, -1, 1, 1)
        mean, var = norm.running_mean.view(shape) * ratio, norm.running_var.view(shape) * ratio
        for dims in ((2, 3), (1, 2, 3)):
            mean = mean + rest * x.mean(dims, keepdim=True)
            var = var + rest * x.var(dims, correction=0, keepdim=True)
        y = (x - mean) / (var + norm.eps).sqrt()
        return y * norm.weight.view(shape) + norm.bias.view(shape)


def build(name: str, **settings: object) -> nn.Module:
    toolbox, cfg = NETWORKS[name]
    pytest.importorskip(f'{toolbox}.models')
    with DefaultScope.overwrite_default_scope(toolbox):
        return MODELS.build({**cfg, **settings})


def apart(outputs: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> float:
    """Return the largest relative distance between outputs of the stages."""
    assert len(outputs) == len(expected)
    pairs = zip(outputs, expected, strict=True)
    return max(((y - wanted).norm() / wanted.norm()).item() for y, wanted in pairs)


@pytest.mark.parametrize('name', NETWORKS)
@torch.no_grad()
def test_network_computes_what_it_computed_with_batch_norm(
    name: str, tmp_path: Path, trained: Callable
) -> None:
    reference = trained(build(name))
    file = str(tmp_path / 'bn.pth')
    # As in the file of a classifier.
    torch.save({**reference.state_dict(), 'fc.weight': torch.ones(2, 2)}, file)
    x = torch.randn(2, 3, 64, 96)
    expected = reference(x)

    init = dict(type='SNPretrained', checkpoint=file, batch_ratio=1)
    network = build(name, norm_cfg=SN, init_cfg=init)
    network.init_weights()
    network.eval()
    assert apart(network(x), expected) < 1e-6

    mixed = build(name, norm_cfg=SN, init_cfg={**init, 'batch_ratio': 0.9})
    mixed.init_weights()
    mixed.eval()
    for parent in list(reference.modules()):
        for child, layer in list(parent.named_children()):
            if isinstance(layer, _BatchNorm) and not isinstance(parent, Mix):
                setattr(parent, child, Mix(layer, 0.9))
    mix = reference(x)
    assert apart(mix, expected) > 0.01
    assert apart(mixed(x), mix) < 1e-5


@torch.no_grad()
def test_frozen_stages_compute_what_they_computed_with_batch_norm(
    tmp_path: Path, trained: Callable
) -> None:
    reference = trained(build('ResNet-18'))
    torch.save(reference.state_dict(), tmp_path / 'bn.pth')
    init = dict(type='SNPretrained', checkpoint=str(tmp_path / 'bn.pth'), batch_ratio=0.6)
    network = build('ResNet-18', norm_cfg=SN, init_cfg=init, frozen_stages=2, norm_eval=False)
    network.init_weights()
    network.train()
    x = torch.randn(2, 3, 64, 96)
    for found, expected in zip(network(x)[:2], reference(x), strict=False):
        assert apart([found], [expected]) < 1e-6
    ratios = {n: m.importance_ratios()[0][2].item() for n, m in network.named_modules()
              if isinstance(m, SwitchNorm)}  # fmt: skip
    frozen = {name for name, ratio in ratios.items() if ratio == 1}
    assert frozen == {name for name in ratios if name.startswith(('sn1', 'layer1', 'layer2'))}
    assert all(ratios[name] == pytest.approx(0.6) for name in ratios.keys() - frozen)


@pytest.mark.parametrize('name', ['MobileNetV2', 'HRNet'])
@torch.no_grad()
def test_converted_module_computes_what_the_loaded_one_does(name: str, trained: Callable) -> None:
    network = trained(build(name))
    x = torch.randn(1, 3, 32, 32)
    expected = network(x)
    count = sum(isinstance(layer, _BatchNorm) for layer in network.modules())
    convert_batch_norm(network, 1)
    assert apart(network(x), expected) < 1e-6
    assert sum(isinstance(layer, SwitchNorm) for layer in network.modules()) == count


@pytest.fixture(scope='module')
def resnet50() -> dict[str, Tensor]:
    """The weights of a ResNet-50 with SN as the toolboxes name them, each with its own number."""
    state = build('ResNet-50', norm_cfg=SN, **WIDE).state_dict()
    state = {name: value for name, value in state.items() if 'num_batches' not in name}
    return {name: torch.full_like(value, i) for i, (name, value) in enumerate(state.items())}


def authors(weights: dict[str, Tensor], prefix: str, detectron: bool) -> dict[str, Tensor]:
    """Return the weights in a layout of the authors' releases."""
    written = {}
    for name, value in weights.items():
        if value.dim() == 1 and not name.endswith(('mean_weight', 'var_weight')):
            value = value.reshape(1, -1, 1, *([] if 'running' in name else [1]))
        if detectron:
            name = re.sub(r'^layer(\d)', lambda found: f'res{int(found[1]) + 1}', name)
            name = re.sub(r'^(conv1|sn1)', r'res1.\1', name)
        written[prefix + name] = value
    return written


LAYOUTS = {
    'imagenet': ('module.', False),
    'detection-fpn': ('Conv_Body.conv_body.', True),
    'detection-c4': ('Conv_Body.', True),
}


@pytest.mark.parametrize('layout', LAYOUTS)
def test_layouts_of_the_authors_start_a_backbone_and_the_head_of_c4(
    layout: str, resnet50: dict, tmp_path: Path
) -> None:
    file = str(tmp_path / 'authors.pth')
    torch.save({'model': authors(resnet50, *LAYOUTS[layout])}, file)
    init = dict(type='SNPretrained', checkpoint=file)
    stages = dict(num_stages=3, strides=(1, 2, 2), dilations=(1, 1, 1), out_indices=(2,))
    backbone = build('ResNet-50', norm_cfg=SN, init_cfg=init, frozen_stages=1, **stages, **WIDE)
    with DefaultScope.overwrite_default_scope('mmdet'):
        head = MODELS.build(dict(type='ResLayer', depth=50, norm_cfg=SN, init_cfg=init))
    filled = {}
    for part in (backbone, head):
        part.init_weights()
        filled |= part.state_dict()
    assert {name for name in filled if 'num_batches' not in name} == resnet50.keys()
    assert all(torch.equal(filled[name], value) for name, value in resnet50.items())


def test_weights_of_two_scopes_do_not_start_layers_of_three(resnet50: dict, tmp_path: Path) -> None:
    file = str(tmp_path / 'authors.pth')
    two = {
        name: value[:2] if name.endswith(('mean_weight', 'var_weight')) else value
        for name, value in resnet50.items()
        if 'running' not in name
    }
    torch.save(authors(two, 'module.', False), file)
    init = dict(type='SNPretrained', checkpoint=file)
    network = build('ResNet-50', norm_cfg=SN, init_cfg=init, **WIDE)
    with pytest.raises(
        UsageError, match=r"trained with scopes=\('in', 'ln'\), but .*: set scopes=\('in', 'ln'\)"
    ):
        network.init_weights()
    two_scopes = dict(type='SN', scopes=('in', 'ln'))
    network = build('ResNet-50', norm_cfg=two_scopes, init_cfg=init, **WIDE)
    network.init_weights()
    assert torch.equal(network.sn1.bias, two['sn1.bias'])


def test_deeper_network_does_not_start_a_shallower_one(tmp_path: Path) -> None:
    file = str(tmp_path / 'deep.pth')
    torch.save(build('ResNet-18', depth=34).state_dict(), file)
    network = build('ResNet-18', norm_cfg=SN, init_cfg=dict(type='SNPretrained', checkpoint=file))
    with pytest.raises(UsageError, match=r'blocks that the module lacks, such as layer1\.2\.conv1'):
        network.init_weights()


def test_frozen_batch_norms_start_as_with_pretrained(tmp_path: Path, trained: Callable) -> None:
    file = str(tmp_path / 'bn.pth')
    torch.save(trained(build('ResNet-18')).state_dict(), file)
    states = []
    for kind in ('SNPretrained', 'Pretrained'):
        norm = dict(type='BN', requires_grad=False)
        init = dict(type=kind, checkpoint=file)
        network = build('ResNet-18', norm_cfg=norm, init_cfg=init, frozen_stages=1)
        network.init_weights()
        states.append(network.state_dict())
    assert all(torch.equal(states[0][name], value) for name, value in states[1].items())


def test_config_names_another_checkpoint_from_the_command_line(
    write_config: Callable, repo: Path, tmp_path: Path, trained: Callable
) -> None:
    config = write_config(
        f"_base_ = '{repo}/configs/demo/faster-rcnn_r18_fpn_sn-all_digits.py'\n"
        "init_cfg = dict(_delete_=True, type='SNPretrained', checkpoint='absent.pth')\n"
        'model = dict(backbone=dict(init_cfg=init_cfg))\n'
    )
    reference = trained(build('ResNet-18', base_channels=32))
    file = str(tmp_path / 'bn.pth')
    torch.save(reference.state_dict(), file)
    read = read_config(config, {'model.backbone.init_cfg.checkpoint': file})
    with DefaultScope.overwrite_default_scope('mmdet'):
        backbone = MODELS.build(read.model.backbone)
    backbone.init_weights()
    assert torch.equal(backbone.layer2[0].sn2.running_mean, reference.layer2[0].bn2.running_mean)
