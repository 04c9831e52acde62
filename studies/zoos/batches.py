"""Random batches that a model of a zoo can train on."""

from typing import Any

import torch
from mmengine.config import Config
from mmengine.structures import PixelData

from sn_openmmlab.config_tree import walk

Batch = dict[str, list[Any]]


def make_batch(toolbox: str, config: Config, images: int, size: int) -> Batch:
    """Return a batch of noise with labels, as a data loader of the toolbox gives it.

    Args:
        toolbox: `mmdet`, `mmseg` or `mmpretrain`.
        config: of the model.
        images: how many.
        size: their height and width in pixels.
    """
    return _MAKE[toolbox](config, images, size)


def _detection(config: Config, images: int, size: int) -> Batch:
    """Return a batch with ten boxes for each image, and what else the config's own data have."""
    from mmdet.testing import demo_mm_inputs

    parts = [part for _, part in walk(config.train_dataloader)]
    panoptic = any(part.get('type') == 'LoadPanopticAnnotations' for part in parts)
    # These two take the label map at an eighth of the image.
    stride = 8 if config.model.get('of', config.model.type) in ('HybridTaskCascade', 'SCNet') else 1
    return demo_mm_inputs(
        images,
        (3, size, size),
        num_items=[10] * images,
        # of which the first is not drawn
        num_classes=2,
        sem_seg_output_strides=stride,
        with_mask=panoptic or any(part.get('with_mask') for part in parts),
        with_semantic=panoptic or any(part.get('with_seg') for part in parts),
    )


def _segmentation(config: Config, images: int, size: int) -> Batch:
    """Return a batch with label maps, and with maps of edges, which PIDNet needs."""
    from mmseg.structures import SegDataSample

    samples = []
    for _ in range(images):
        sample = SegDataSample(metainfo=dict(img_shape=(size, size), ori_shape=(size, size)))
        sample.gt_sem_seg = PixelData(data=torch.randint(0, 2, (1, size, size)))
        sample.gt_edge_map = PixelData(data=torch.randint(0, 2, (1, size, size)))
        samples.append(sample)
    return dict(inputs=_noise(images, size), data_samples=samples)


def _classification(config: Config, images: int, size: int) -> Batch:
    """Return a batch with a class for each image."""
    from mmpretrain.structures import DataSample

    channels = 1 if config.model.backbone.type == 'LeNet5' else 3
    samples = [DataSample().set_gt_label(i) for i in range(images)]
    return dict(inputs=[x[:channels] for x in _noise(images, size)], data_samples=samples)


def _noise(images: int, size: int) -> list[torch.Tensor]:
    return [torch.randint(0, 256, (3, size, size), dtype=torch.uint8) for _ in range(images)]


_MAKE = dict(mmdet=_detection, mmseg=_segmentation, mmpretrain=_classification)
