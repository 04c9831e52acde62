"""The quickstarts' configs, made so small that a training takes a second."""

import copy
from functools import cache
from pathlib import Path
from typing import Any

from mmengine.config import Config

from studies.mistakes.data import CLASSES, HEIGHT, WIDTH

ROOT = Path(__file__).resolve().parents[2]
_LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')
_QUICKSTARTS = {
    'box': 'faster-rcnn_r18_fpn_sn-all_digits.py',
    'mask': 'mask-rcnn_r18_fpn_sn-all_digits.py',
    'map': 'deeplab_r18b-d8_sn_digits.py',
    'class': 'resnet18_sn_digits.py',
}
TASKS = tuple(_QUICKSTARTS)


def good_config(task: str) -> dict[str, Any]:
    """Return a copy of the config of a task, whose data are in the folder ``data``.

    It trains three iterations of two images, saves a checkpoint and validates on two images.
    """
    return copy.deepcopy(_good_config(task))


@cache
def _good_config(task: str) -> dict[str, Any]:
    config = Config.fromfile(ROOT / 'configs/demo' / _QUICKSTARTS[task])
    for loader in _LOADERS:
        config[loader].update(batch_size=2, num_workers=0, persistent_workers=False)
    {'box': _shrink_boxes, 'mask': _shrink_masks, 'map': _shrink_maps, 'class': _shrink_classes}[
        task
    ](config)
    config.default_hooks.logger.interval = 1
    if 'env_cfg' in config:
        config.env_cfg.mp_cfg.opencv_num_threads = 1
    return _used(config)


def _used(config: Config) -> dict[str, Any]:
    """Return what a run reads; the other variables of the file would not be mistakes."""
    ends = ('dataloader', 'evaluator', '_cfg', 'hooks', 'scheduler', 'imports', 'scope', '_lr')
    names = ('model', 'optim_wrapper', 'visualizer', 'randomness', 'data_preprocessor')
    found = config.to_dict()
    found.pop('norm_cfg', None)
    return {key: value for key, value in found.items() if key.endswith(ends) or key in names}


def _shrink_boxes(config: Config) -> None:
    model = config.model
    model.backbone.update(base_channels=8)
    model.neck.update(in_channels=[8, 16, 32, 64], out_channels=16)
    model.rpn_head.update(in_channels=16, feat_channels=16)
    model.roi_head.bbox_roi_extractor.out_channels = 16
    model.roi_head.bbox_head.update(
        in_channels=16, conv_out_channels=16, fc_out_channels=32, num_classes=2
    )
    model.train_cfg.rpn_proposal.update(nms_pre=50, max_per_img=20)
    model.train_cfg.rcnn.sampler.num = 16
    model.test_cfg.rpn.update(nms_pre=50, max_per_img=20)
    model.test_cfg.rcnn.update(score_thr=0.0, max_per_img=10)
    for loader, split in zip(_LOADERS, ('train', 'val', 'val'), strict=True):
        dataset = config[loader].dataset
        dataset.update(
            data_root='data/',
            ann_file=f'annotations/{split}.json',
            data_prefix=dict(img=f'images/{split}/'),
            metainfo=dict(classes=CLASSES),
        )
        dataset.pipeline[1 if split == 'val' else 2].scale = (WIDTH, HEIGHT)
    for evaluator in (config.val_evaluator, config.test_evaluator):
        evaluator.ann_file = 'data/annotations/val.json'
    _train_one_epoch(config)


def _shrink_masks(config: Config) -> None:
    _shrink_boxes(config)
    head = config.model.roi_head
    head.mask_roi_extractor.out_channels = 16
    head.mask_head.update(in_channels=16, conv_out_channels=16, num_convs=1, num_classes=2)


def _shrink_maps(config: Config) -> None:
    model = config.model
    model.data_preprocessor.size = (HEIGHT, WIDTH)
    model.backbone.update(stem_channels=8, base_channels=8)
    for name, channels in (('decode_head', 64), ('auxiliary_head', 32)):
        model[name].update(in_channels=channels, channels=16, num_classes=2)
        model[name].loss_decode.class_weight = [0.5, 1.0]
    for loader, split in zip(_LOADERS, ('train', 'val', 'val'), strict=True):
        config[loader].dataset.update(
            data_root='data',
            img_suffix='.jpg',
            data_prefix=dict(img_path=f'images/{split}', seg_map_path=f'labels/{split}'),
            metainfo=dict(classes=CLASSES, palette=[[255, 255, 0], [0, 0, 128]]),
        )
    config.train_cfg.update(max_iters=3, val_interval=3)
    config.param_scheduler[1].update(begin=0, end=3)
    del config.param_scheduler[0]
    config.default_hooks.checkpoint.interval = 3


def _shrink_classes(config: Config) -> None:
    config.model.backbone.update(stem_channels=8, base_channels=8)
    config.model.head.update(num_classes=2, in_channels=_width(config))
    for loader, split in zip(_LOADERS, ('train', 'val', 'val'), strict=True):
        config[loader].dataset.update(data_root='data/classes', data_prefix=split)
        for step in config[loader].dataset.pipeline:
            if 'scale' in step or 'crop_size' in step:
                step.update({key: 32 for key in ('scale', 'crop_size') if key in step})
    _train_one_epoch(config)
    config.param_scheduler[0] = dict(
        type='CosineAnnealingLR', T_max=1, by_epoch=True, convert_to_iter_based=True
    )


def _width(config: Config) -> int:
    return config.model.backbone.base_channels * 2 ** (
        config.model.backbone.get('num_stages', 4) - 1
    )


def _train_one_epoch(config: Config) -> None:
    config.train_cfg.update(max_epochs=1, val_interval=1)
    config.param_scheduler = config.param_scheduler[1:]
    if 'milestones' in config.param_scheduler[0]:
        config.param_scheduler[0].update(milestones=[1], end=1)
