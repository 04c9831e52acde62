"""A head with fewer classes than its data is an error, one with more a warning."""

import pytest

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.data.class_numbers import check_class_numbers
from sn_openmmlab.runs.data.datasets import class_names

CLASSES = ('a', 'b', 'c')


def check(toolbox: str, model: dict, classes: object = CLASSES) -> None:
    check_class_numbers(toolbox, 'train_dataloader', classes, model)


@pytest.mark.parametrize(
    ('toolbox', 'model', 'place'),
    [
        ('mmdet', dict(bbox_head=dict(num_classes=2)), 'model.bbox_head'),
        ('mmdet', dict(roi_head=dict(mask_head=dict(num_classes=0))), 'model.roi_head.mask_head'),
        ('mmdet', dict(bbox_head=[dict(num_classes=3), dict(num_classes=1)]), 'model.bbox_head.1'),
        ('mmseg', dict(auxiliary_head=dict(num_classes=2)), 'model.auxiliary_head'),
    ],
)
def test_too_few(toolbox: str, model: dict, place: str) -> None:
    with pytest.raises(UsageError, match=f'{place}.num_classes is .* has 3 classes: set {place}'):
        check(toolbox, model)


@pytest.mark.parametrize(
    ('toolbox', 'model'),
    [
        # As in the zoo: STDC's head of boundaries, and words in place of classes.
        ('mmseg', dict(auxiliary_head=[dict(num_classes=1, boundary_threshold=0.1)])),
        ('mmdet', dict(language_model={}, bbox_head=dict(num_classes=1))),
        ('mmdet', dict(roi_head=dict(mask_head=dict(num_classes=1, class_agnostic=True)))),
    ],
)
def test_heads_with_classes_of_their_own(toolbox: str, model: dict) -> None:
    check(toolbox, model)


@pytest.mark.parametrize('head', [dict(num_classes=1), dict(num_classes=2, out_channels=1)])
def test_one_output_for_two_classes(head: dict) -> None:
    head['loss_decode'] = dict(type='CrossEntropyLoss', use_sigmoid=True)
    check('mmseg', dict(decode_head=head), ('background', 'road'))


def test_too_many(capsys: pytest.CaptureFixture) -> None:
    check('mmseg', dict(decode_head=dict(num_classes=150)))
    assert 'the others are never trained' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('model', 'classes'),
    [
        (dict(bbox_head=dict(num_classes=3)), CLASSES),
        # A region proposal network has one class of its own, and data sets may name none.
        (dict(rpn_head=dict(num_classes=1)), CLASSES),
        (dict(bbox_head=dict(num_classes=1)), None),
        (None, CLASSES),
    ],
)
def test_nothing_to_say(model: dict, classes: object, capsys: pytest.CaptureFixture) -> None:
    check('mmdet', model, classes)
    assert capsys.readouterr().err == ''


def test_boxes_of_a_panoptic_data_set_have_some_of_its_classes() -> None:
    assert class_names(dict(type='CocoPanopticDataset'), 'mmdet') is None
    assert len(class_names(dict(type='CocoDataset'), 'mmdet')) == 80
