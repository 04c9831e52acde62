"""A box goes to the level that the authors' code recorded."""

import math

import pytest
import torch

from tests import recorded_detectors

pytest.importorskip('mmdet')
from mmdet.models.roi_heads.roi_extractors import SingleRoIExtractor

from sn_openmmlab.detectron.roi_extractor import DetectronRoIExtractor

SETTINGS = dict(
    roi_layer=dict(type='RoIAlign', output_size=7, sampling_ratio=2, aligned=False),
    out_channels=2,
    featmap_strides=[4, 8, 16, 32],
)


def test_levels_are_the_recorded_ones() -> None:
    record = recorded_detectors.read(recorded_detectors.CASES[0], part=True)['A']
    levels = DetectronRoIExtractor(**SETTINGS).map_roi_levels(record['rois'], 4)
    assert torch.equal(levels + 2, record['roi_levels'])
    # Two boxes lie beside a border.
    stock = SingleRoIExtractor(**SETTINGS).map_roi_levels(record['rois'], 4)
    assert (stock != levels).nonzero().flatten().tolist() == [6, 7]


def test_level_changes_where_a_box_has_a_power_of_two_of_pixels() -> None:
    boxes = [(0, 10, 20, 10 + side, 20 + side) for side in (110, 111, 222, 223, 446, 447, 9999)]
    levels = DetectronRoIExtractor(**SETTINGS).map_roi_levels(torch.tensor(boxes).float(), 4)
    assert levels.tolist() == [0, 1, 1, 2, 2, 3, 3]


def level(x1: float, y1: float, x2: float, y2: float) -> int:
    """Return the index of the level by Detectron's formula, in float64."""
    area = max((x2 - x1 + 1) * (y2 - y1 + 1), 0)
    return min(max(math.floor(4 + math.log2(math.sqrt(area) / 224 + 1e-6)), 2), 5) - 2


def test_levels_are_those_of_the_formula_beside_each_border() -> None:
    """1e-6 of 224 pixels below a border, a box belongs to the next level already."""
    extractor = DetectronRoIExtractor(**SETTINGS)
    for border in (112, 224, 448):
        for below in (4e-4, 1.5e-4, 0, -1e-4):
            side = torch.tensor(border - 1 - below).item()
            rois = torch.tensor([[0.0, 0, 0, side, side]])
            assert extractor.map_roi_levels(rois, 4).item() == level(*rois[0, 1:].tolist()), below


def test_boxes_narrower_than_a_pixel_have_a_level() -> None:
    """After the image was enlarged their area is negative; its root would be no number."""
    boxes = [(0, 100, 50, 98.3, 90), (0, 100, 50, 98.3, 48.3), (0, 9, 9, 8, 8), (0, 9, 0, 7, 9999)]
    rois = torch.tensor(boxes).float()
    extractor = DetectronRoIExtractor(**SETTINGS)
    assert extractor.map_roi_levels(rois, 4).tolist() == [level(*box[1:]) for box in boxes]
    maps = [torch.ones(1, 2, 64, 64) for _ in range(4)]
    assert extractor(maps, rois)[:3].amax((1, 2, 3)).tolist() == [1, 1, 1]
