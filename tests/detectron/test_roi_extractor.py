"""A box goes to the level that the authors' code recorded."""

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
