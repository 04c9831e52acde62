"""The folder is made once and whole, reused after, and read by mmdet and mmseg."""

import json

import cv2
import numpy as np
import pytest
from PIL import Image
from pycocotools.coco import COCO

from studies.demo.dataset import CLASSES, DemoParameters, make_demo_data

SMALL = DemoParameters(train=2, val=1, seed=9, width=160, height=128)


def _times(root):
    return {path: path.stat().st_mtime_ns for path in root.rglob('*')}


def test_a_second_run_reuses_the_folder(tmp_path):
    made = make_demo_data(tmp_path / 'demo', SMALL)
    times = _times(made.root)
    found = make_demo_data(tmp_path / 'demo', SMALL)
    assert (made.reused, found.reused) == (False, True)
    assert found.instances == made.instances
    assert _times(found.root) == times
    assert [path.name for path in tmp_path.iterdir()] == ['demo']


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / 'demo').mkdir()
    assert not make_demo_data(tmp_path / 'demo', SMALL).reused
    assert (tmp_path / 'demo' / 'images' / 'val' / '000000.png').is_file()


def test_scene_has_the_requested_size(tmp_path):
    root = make_demo_data(tmp_path / 'new' / 'demo', SMALL).root
    assert Image.open(root / 'images' / 'train' / '000001.png').size == (160, 128)


def test_more_images_leave_the_first_ones_as_they_are(tmp_path, demo_root):
    more = make_demo_data(tmp_path / 'demo', DemoParameters(train=1, val=4, seed=3)).root
    for name in ('images/train/000000.png', 'images/val/000002.png', 'labels/val/000002.png'):
        np.testing.assert_array_equal(Image.open(more / name), Image.open(demo_root / name))


def test_other_parameters_are_refused_and_nothing_is_touched(tmp_path):
    root = make_demo_data(tmp_path / 'demo', SMALL).root
    times = _times(root)
    with pytest.raises(ValueError, match=r"other parameters .*'seed': 9.*another folder"):
        make_demo_data(root, DemoParameters(train=2, val=1, seed=8, width=160, height=128))
    assert _times(root) == times


def test_another_format_is_refused(tmp_path):
    root = make_demo_data(tmp_path / 'demo', SMALL).root
    record = json.loads((root / 'demo.json').read_text())
    (root / 'demo.json').write_text(json.dumps(record | {'format_version': 0}))
    with pytest.raises(ValueError, match='format 0'):
        make_demo_data(root, SMALL)


@pytest.mark.parametrize('content', ['', '[]', '{}', '{"format_version": 1}'])
def test_folder_with_other_content_is_refused(tmp_path, content):
    (tmp_path / 'demo.json').write_text(content)
    with pytest.raises(ValueError, match='is not demo data: name another folder'):
        make_demo_data(tmp_path, SMALL)
    assert (tmp_path / 'demo.json').read_text() == content


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / 'file').write_text('')
    with pytest.raises(OSError, match=r'the demo data cannot be written to .*file/sub/demo'):
        make_demo_data(tmp_path / 'file' / 'sub' / 'demo', SMALL)
    with pytest.raises(ValueError, match='is not demo data'):
        make_demo_data(tmp_path / 'file', SMALL)


@pytest.mark.parametrize('error', [OSError('disk full'), KeyboardInterrupt('stopped')])
def test_interrupted_run_leaves_nothing(tmp_path, monkeypatch, error):
    encode, calls = cv2.imencode, []

    def stop_at_third(*args):
        calls.append(args)
        if len(calls) == 3:
            raise error
        return encode(*args)

    monkeypatch.setattr(cv2, 'imencode', stop_at_third)
    with pytest.raises((OSError, KeyboardInterrupt), match=str(error)):
        make_demo_data(tmp_path / 'demo', SMALL)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ('values', 'message'),
    [
        ({'train': 0}, 'at least 1 train and 1 val image, not 0 and 100'),
        ({'val': -1}, 'at least 1 train and 1 val image, not 400 and -1'),
        ({'seed': -1}, 'seed of the demo data must be 0 or more, not -1'),
        ({'width': 0}, 'at least 128 x 128 pixels .* not 0 x 192'),
        ({'height': 100}, 'at least 128 x 128 pixels .* not 256 x 100'),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(values, message):
    with pytest.raises(ValueError, match=message) as caught:
        DemoParameters(**values)
    assert str(caught.value).count('.') == 1


def test_mmdet_reads_every_instance(demo_root):
    from mmdet.datasets import CocoDataset

    dataset = CocoDataset(
        data_root=str(demo_root),
        ann_file='annotations/instances_train.json',
        data_prefix={'img': 'images/train'},
        metainfo={'classes': CLASSES},
        filter_cfg={'filter_empty_gt': True, 'min_size': 1},
        pipeline=[
            {'type': 'mmdet.LoadImageFromFile'},
            {'type': 'mmdet.LoadAnnotations', 'with_bbox': True, 'with_mask': True},
        ],
    )
    coco = COCO(demo_root / 'annotations' / 'instances_train.json')
    assert len(dataset) == 6
    for item in dataset:
        annotations = coco.imgToAnns[item['img_id']]
        assert item['img'].shape == (192, 256, 3)
        assert item['gt_bboxes_labels'].tolist() == [a['category_id'] - 1 for a in annotations]
        boxes = [[x, y, x + w, y + h] for x, y, w, h in (a['bbox'] for a in annotations)]
        assert item['gt_bboxes'].tensor.tolist() == boxes
        expected = [coco.annToMask(annotation) for annotation in annotations]
        np.testing.assert_array_equal(item['gt_masks'].to_ndarray(), expected)


def test_mmseg_reads_every_label_map(demo_root):
    from mmseg.datasets import BaseSegDataset

    dataset = BaseSegDataset(
        data_root=str(demo_root),
        data_prefix={'img_path': 'images/val', 'seg_map_path': 'labels/val'},
        img_suffix='.png',
        seg_map_suffix='.png',
        metainfo={'classes': ('background', *CLASSES)},
        pipeline=[{'type': 'mmseg.LoadImageFromFile'}, {'type': 'mmseg.LoadAnnotations'}],
    )
    assert len(dataset) == 3
    for index, item in enumerate(dataset):
        expected = Image.open(demo_root / 'labels' / 'val' / f'{index:06d}.png')
        np.testing.assert_array_equal(item['gt_seg_map'], expected)
        assert item['img'].shape == (192, 256, 3)
