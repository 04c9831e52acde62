"""The table of the detectors that the authors trained, or have a config for."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from sn_openmmlab.checkpoints.plans.layout import Layout
from sn_openmmlab.checkpoints.plans.norm_shapes import AUTHORS_SCOPES
from sn_openmmlab.checkpoints.plans.segmenter import PREPROCESSING
from sn_openmmlab.checkpoints.weight_names import bare

_FOLDER = 'detection/released'
_RGB = {
    'mean': [123.675, 116.28, 103.53],
    'std': [58.395, 57.12, 57.375],
    'bgr_to_rgb': True,
}


@dataclass(frozen=True)
class Release:
    """A detector with a ResNet-50.

    Attributes:
        layout: The layout of its file.
        controls: The number of scopes that each of its layers mixes.
        fpn: Whether it has an FPN. If not, conv5 is its box head (C4).
        convs: Whether its box head has four convolutions, with one linear layer after them. If
            not, an FPN's has two linear layers.
        masks: Whether it has a mask head.
        frozen_bn: Whether its first stage is frozen and mixes `bn`.
        scratch: Whether it was trained from scratch.
    """

    layout: Layout
    controls: int
    fpn: bool = True
    convs: bool = False
    masks: bool = False
    frozen_bn: bool = False
    scratch: bool = False

    @property
    def images(self) -> Mapping[str, Any]:
        """The images that it was trained on, in the words of MMDetection's data_preprocessor."""
        return PREPROCESSING if self.scratch else _RGB


def _layout(name: str, config: str, model: str) -> Layout:
    return Layout(name, of_authors=True, config=f'{_FOLDER}/{config}.py', model=model)


_FASTER = Release(
    _layout(
        'faster-rcnn-fpn-8x2',
        'faster-rcnn_r50_fpn_sn_8xb2',
        "the authors' Faster R-CNN with FPN and SN of in, ln, bn",
    ),
    controls=3,
    frozen_bn=True,
)
_FASTER_8X1 = Release(
    _layout(
        'faster-rcnn-fpn-8x1',
        'faster-rcnn_r50_fpn_sn_8xb1',
        "the authors' Faster R-CNN with FPN and SN of in, ln",
    ),
    controls=2,
)
_MASK_8X1 = Release(
    _layout(
        'mask-rcnn-fpn-8x1',
        'mask-rcnn_r50_fpn_sn_8xb1',
        "the authors' Mask R-CNN with FPN and SN of in, ln",
    ),
    controls=2,
    convs=True,
    masks=True,
)
_C4 = Release(
    _layout(
        'faster-rcnn-c4',
        'faster-rcnn_r50_c4_sn',
        "the authors' Faster R-CNN C4 with SN of in, ln, bn",
    ),
    controls=3,
    fpn=False,
)
_MASK_SCRATCH = Release(
    _layout(
        'mask-rcnn-fpn-scratch',
        'mask-rcnn_r50_fpn_sn_scratch',
        "the authors' Mask R-CNN with FPN and SN of in, ln, bn, trained from scratch",
    ),
    controls=3,
    convs=True,
    masks=True,
    scratch=True,
)
RELEASES = (_FASTER, _FASTER_8X1, _MASK_8X1, _C4, _MASK_SCRATCH)
DETECTORS = tuple(release.layout for release in RELEASES)


def find_release(weights: Mapping[str, Tensor]) -> Release:
    """Return the detector that is nearest to one with these weights."""
    names = [bare(name) for name in weights]
    if any(name.startswith(('RPN.RPN_', 'Conv_Body.res')) for name in names):
        return _C4
    masks = any(name.startswith('Mask_') for name in names)
    sizes = Counter(w.numel() for name, w in weights.items() if name.endswith('.mean_weight'))
    # Other layers are misfits then.
    controls = max(AUTHORS_SCOPES, key=lambda number: sizes[number])
    return next(
        release
        for release in RELEASES
        if release.fpn and (release.masks, release.controls) == (masks, controls)
    )
