"""The table tells the layout of a file, and refuses files that cannot be converted."""

from collections.abc import Callable

import pytest
import torch

from sn_openmmlab.checkpoints.files.weights import find_weights
from sn_openmmlab.checkpoints.plans.layouts import (
    LAYOUTS,
    plan_weights,
    recorded_layout,
    to_toolbox,
)
from sn_openmmlab.errors import UsageError

# Converted files record these names, so they must not change.
OF_AUTHORS = {
    'imagenet',
    'detection-fpn',
    'detection-c4',
    'ade20k',
    'faster-rcnn-fpn-8x2',
    'faster-rcnn-fpn-8x1',
    'mask-rcnn-fpn-8x1',
    'faster-rcnn-c4',
    'mask-rcnn-fpn-scratch',
}
FROM_BATCH_NORM = {'bn', 'resnet-bn'}


def test_names_of_the_layouts_are_those_that_older_files_record() -> None:
    assert {layout.name for layout in LAYOUTS if layout.of_authors} == OF_AUTHORS
    assert {layout.name for layout in LAYOUTS if layout.from_batch_norm} == FROM_BATCH_NORM
    assert len(LAYOUTS) == len({layout.name for layout in LAYOUTS}) == 12


def test_recorded_layout_is_found_by_its_name() -> None:
    for layout in LAYOUTS:
        assert recorded_layout({'meta': dict(converter='x', layout=layout.name)}) is layout
    for meta in ({}, None, dict(converter='x', layout='other'), dict(layout='imagenet')):
        assert recorded_layout({'meta': meta}) is None


def test_names_of_the_weights_tell_the_layout(
    outlined: Callable[[str], dict], bn_weights: dict
) -> None:
    assert plan_weights(bn_weights).layout.name == 'bn'
    for file, name in (
        ('resnet50_sn_8x1', 'imagenet'),
        ('resnet50_sn_detectron_fpn', 'detection-fpn'),
        ('resnet50_sn_detectron_c4', 'detection-c4'),
    ):
        assert plan_weights(find_weights(outlined(file))).layout.name == name


@pytest.mark.parametrize('part', ['RPN', 'Box_Head', 'Mask_Head', 'Box_Outs', 'Keypoint_Head'])
def test_one_part_of_a_detector_tells_it_from_its_backbone(part: str) -> None:
    weights = {f'Conv_Body.{n}.mean_weight': torch.ones(3) for n in ('res1.sn1', 'res2.0.sn1')}
    weights[f'module.{part}.conv.weight'] = torch.ones(4, 4)
    with pytest.raises(UsageError, match=r"it looks like the authors' .* R-CNN.*, but lacks"):
        to_toolbox(weights)


def test_decoder_without_its_encoder_is_refused(outlined: Callable[[str], dict]) -> None:
    with pytest.raises(UsageError, match='give ENCODER DECODER OUT'):
        to_toolbox(find_weights(outlined('ade20k_decoder')))
