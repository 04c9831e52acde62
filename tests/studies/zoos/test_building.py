"""Models are built without the work of filling their weights, but the same otherwise."""

import time

import pytest
import torch
from mmengine.registry import MODELS
from torch import nn

from studies.zoos.building import Unfilled, build, fill, kind, replaceable
from studies.zoos.configs import read_zoo_config


def test_large_weights_are_not_filled_and_small_ones_are() -> None:
    with Unfilled():
        start = time.process_time()
        # 1.6 GB, which take seconds to fill
        large = nn.Linear(20_000, 20_000)
        assert time.process_time() - start < 0.5
        small = nn.init.constant_(torch.empty(10), 3.0)
        assert nn.init.ones_(torch.empty(7)).sum() == 7
    assert large.weight.shape == (20_000, 20_000)
    assert (small == 3).all()


def test_a_model_has_the_layers_of_the_toolbox_and_weights_once_it_is_filled() -> None:
    pytest.importorskip('mmdet')
    config = read_zoo_config('mmdet', 'retinanet/retinanet_r18_fpn_1x_coco.py')
    model = build(config)
    assert str(model) == str(MODELS.build(config.model))
    fill(model)
    for name, weight in model.named_parameters():
        assert weight.isfinite().all(), name
        assert weight.ndim < 2 or weight.std() > 0, name
    # The head starts at a probability of 1 % for each class.
    assert model.bbox_head.retina_cls.bias.sigmoid().mean().item() == pytest.approx(0.01)


def test_the_norms_that_are_to_become_sn_are_told_apart() -> None:
    layers = [nn.BatchNorm1d(2), nn.SyncBatchNorm(2), nn.GroupNorm(1, 2), nn.LayerNorm(2)]
    model = nn.Sequential(*layers, nn.InstanceNorm2d(2, affine=True))
    kinds = {name: kind(layer) for name, layer in replaceable(model).items()}
    assert kinds == {'0': 'BN', '1': 'SyncBN', '2': 'GN'}


def test_the_sync_bn_of_mmcv_is_built_without_other_processes() -> None:
    pytest.importorskip('mmdet')
    path = 'strong_baselines/mask-rcnn_r50_fpn_rpn-2conv_4conv1fc_syncbn-all_lsj-100e_coco.py'
    layers = replaceable(build(read_zoo_config('mmdet', path)))
    # four convolutions of the box head and four of the mask head
    assert [kind(layer) for layer in layers.values()].count('MMSyncBN') == 8
