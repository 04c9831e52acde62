"""Norm layers are counted by kind and by part, whatever wraps the model."""

import pytest
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import MODELS
from torch import nn

from sn_openmmlab import SwitchNorm, SyncSwitchNorm
from sn_openmmlab.analysis.norms import (
    bare_name,
    describe_norms,
    norm_layers,
    part_of,
)


class OurSwitchNorm(SwitchNorm):
    """What derives from SN is SN."""


class OurGroupNorm(nn.GroupNorm):
    """A subclass, as ConvNeXt's LN2d is of LayerNorm."""


class FrozenBatchNorm2d(nn.Module):
    """As torchvision's: of none of torch's classes."""


def _model(**parts: nn.Module) -> nn.Module:
    model = nn.Module()
    for name, part in parts.items():
        model.add_module(name, part)
    return model


def _detector() -> nn.Module:
    box = _model(conv=nn.Conv2d(3, 3, 1), norm=nn.BatchNorm2d(4))
    return _model(
        backbone=nn.Sequential(SwitchNorm(4), nn.ReLU(), OurSwitchNorm(8)),
        neck=SyncSwitchNorm(4),
        roi_head=_model(bbox_head=box, mask_head=nn.Sequential(SwitchNorm(4))),
    )


def test_sentence_counts_sn_by_part_and_others_by_kind() -> None:
    assert describe_norms(norm_layers(_detector())) == (
        'SN in 3 layers (backbone 2, mask_head 1), SyncSN in 1 layer (neck 1); '
        'other norms in 1: BN 1, as roi_head.bbox_head.norm.'
    )


def test_every_kind_of_norm_is_counted() -> None:
    kinds = {
        'BN': [nn.BatchNorm1d(4), nn.BatchNorm2d(4), nn.BatchNorm3d(4)],
        'SyncBN': [nn.SyncBatchNorm(4)],
        'GN': [nn.GroupNorm(2, 4)],
        'LN': [nn.LayerNorm(4)],
        'IN': [nn.InstanceNorm1d(4), nn.InstanceNorm2d(4), nn.InstanceNorm3d(4)],
        'RMSNorm': [nn.RMSNorm(4)],
        'OurGroupNorm': [OurGroupNorm(2, 4)],
        'FrozenBatchNorm2d': [FrozenBatchNorm2d()],
    }
    norms = [norm for group in kinds.values() for norm in group]
    layers = norm_layers(nn.Sequential(nn.Conv2d(4, 4, 1), *norms, nn.ReLU(), nn.Dropout()))
    assert [layer.kind for layer in layers] == [kind for kind in kinds for _ in kinds[kind]]
    assert not any(layer.switchable for layer in layers)
    assert describe_norms(layers) == (
        'SN in 0 layers; other norms in 12: BN 3, SyncBN 1, GN 1, LN 1, IN 3, RMSNorm 1, '
        'OurGroupNorm 1, FrozenBatchNorm2d 1, as 1.'
    )


def test_norms_of_mmengine_and_mmcv_are_counted() -> None:
    ops = pytest.importorskip('mmcv.ops')
    synced = MODELS.get('SyncBN')(4)
    assert [x.kind for x in norm_layers(nn.Sequential(synced))] == ['SyncBN']
    assert [x.kind for x in norm_layers(revert_sync_batchnorm(synced))] == ['BN']
    # Its constructor wants a process group.
    norm = ops.SyncBatchNorm.__new__(ops.SyncBatchNorm)
    nn.Module.__init__(norm)
    assert [layer.kind for layer in norm_layers(norm)] == ['SyncBN']


def test_model_without_others_says_so() -> None:
    assert describe_norms(norm_layers(_model(backbone=SwitchNorm(4)))) == (
        'SN in 1 layer (backbone 1); no other norms.'
    )
    assert describe_norms([]) == 'SN in 0 layers; no other norms.'


def test_wrapped_model_has_the_names_of_the_bare_one() -> None:
    bare = norm_layers(_detector())
    wrapped = nn.DataParallel(_model(module=_detector()))
    assert norm_layers(wrapped) == bare
    assert bare_name('module._fsdp_wrapped_module.neck.convs.0.bn') == 'neck.convs.0.bn'


@pytest.mark.parametrize(
    ('name', 'part'),
    [
        ('backbone.layer1.0.sn1', 'backbone'),
        ('roi_head.bbox_head.shared_convs.0.sn', 'bbox_head'),
        ('roi_head.shared_head.layer4.0.sn1', 'shared_head'),
        ('sn', 'sn'),
    ],
)
def test_part_is_the_first_name_or_the_head_of_a_roi_head(name: str, part: str) -> None:
    assert part_of(name) == part
