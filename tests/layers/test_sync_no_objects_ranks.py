"""A rank whose images have no object takes part in SyncSN's all-reduces like the others."""

from typing import Any

import pytest
import torch
from mmengine.hub import get_config
from mmengine.model import MMDistributedDataParallel
from mmengine.optim import OptimWrapper
from mmengine.registry import init_default_scope

import sn_openmmlab  # noqa: F401 (registers SyncSN)

pytest.importorskip('mmdet')

SYNC_SN = dict(type='SyncSN', requires_grad=True)
# What the images of the first and of the second rank hold in each step.
OBJECTS = [(2, 0), (0, 1), (0, 0)]


def _model() -> torch.nn.Module:
    """Return a small Mask R-CNN with SyncSN in all its parts."""
    from mmdet.registry import MODELS

    init_default_scope('mmdet')
    config = get_config('mmdet::mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py').model
    config.backbone.update(
        depth=18, norm_cfg=SYNC_SN, norm_eval=False, frozen_stages=-1, init_cfg=None
    )
    config.neck.update(in_channels=[64, 128, 256, 512], out_channels=32, norm_cfg=SYNC_SN)
    config.rpn_head.update(in_channels=32, feat_channels=32)
    for part in ('bbox', 'mask'):
        config.roi_head[f'{part}_roi_extractor'].update(out_channels=32)
        config.roi_head[f'{part}_head'].update(in_channels=32, num_classes=3)
    config.roi_head.bbox_head.update(
        type='Shared4Conv1FCBBoxHead', conv_out_channels=32, fc_out_channels=32, norm_cfg=SYNC_SN
    )
    config.roi_head.mask_head.update(num_convs=1, conv_out_channels=32, norm_cfg=SYNC_SN)
    # Only true objects have a mask.
    config.train_cfg.rcnn.sampler.update(num=16)
    config.train_cfg.rpn_proposal.update(max_per_img=16)
    return MODELS.build(config)


def on_rank(rank: int, world: int) -> list[dict[str, Any]]:
    from mmdet.testing import demo_mm_inputs

    torch.manual_seed(0)
    model = MMDistributedDataParallel(
        _model(), broadcast_buffers=False, find_unused_parameters=False
    )
    model.train()
    wrapper = OptimWrapper(torch.optim.SGD(model.parameters(), 0.01))
    steps = []
    for step, objects in enumerate(OBJECTS):
        torch.manual_seed(10 * step + rank)
        data = demo_mm_inputs(
            1, [(3, 64, 64)], num_items=[objects[rank]], num_classes=3, with_mask=True
        )
        steps.append(dict(losses=model.train_step(data, wrapper)))
    steps[-1]['state'] = model.module.state_dict()
    return steps


@pytest.fixture(scope='module')
def ranks(run_ranks: Any) -> list[list[dict[str, Any]]]:
    """Return what two ranks hold after their steps."""
    return run_ranks(__file__, 2)


def test_all_steps_end_and_have_losses_that_are_finite(ranks: list) -> None:
    for rank, steps in enumerate(ranks):
        for objects, step in zip(OBJECTS, steps, strict=True):
            assert all(loss.isfinite() for loss in step['losses'].values())
            # The masks of nothing.
            assert (step['losses']['loss_mask'] == 0) == (objects[rank] == 0)


def test_ranks_hold_the_same_model(ranks: list) -> None:
    first, second = (steps[-1]['state'] for steps in ranks)
    for name, value in first.items():
        assert torch.equal(value, second[name]), name
        assert value.isfinite().all(), name
    tracked = {name: int(x) for name, x in first.items() if name.endswith('num_batches_tracked')}
    masks = {name: n for name, n in tracked.items() if 'mask_head' in name}
    # No rank has a mask in the last step.
    assert set(masks.values()) == {2}
    assert {n for name, n in tracked.items() if name not in masks} == {3}
