"""tools/predict.py predicts what tools/test.py does, and says in a sentence what is wrong."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

CLASSIFICATION = """
default_scope = 'mmpretrain'
custom_imports = dict(imports=['sn_openmmlab'], allow_failed_imports=False)
model = dict(
    type='ImageClassifier',
    backbone=dict(type='ResNet', depth=18, norm_cfg=dict(type='SN')),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(
        type='LinearClsHead',
        num_classes=2,
        in_channels=512,
        loss=dict(type='CrossEntropyLoss'),
        topk=(1,),
    ),
)
data_preprocessor = dict(mean=[123.675, 116.28, 103.53], std=[58.4, 57.1, 57.4], to_rgb=True)
test_dataloader = dict(
    batch_size=1,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='CustomDataset',
        data_root='{data}',
        pipeline=[
            dict(type='LoadImageFromFile'),
            dict(type='ResizeEdge', scale=48, edge='short'),
            dict(type='CenterCrop', crop_size=48),
            dict(type='PackInputs'),
        ],
    ),
)
test_evaluator = dict(type='Accuracy')
test_cfg = dict(type='TestLoop')
"""


@pytest.fixture
def tested_predictions(repo: Path, run_tool: Callable, tmp_path: Path) -> Callable:
    """Return a function (config, checkpoint) -> what tools/test.py predicts, by image name."""

    def run(config: Path, checkpoint: Path) -> dict[str, dict]:
        file = tmp_path / 'tested.pkl'
        work_dir = tmp_path / 'work'
        run_tool(repo / 'tools/test.py', config, checkpoint, '--out', file, '--work-dir', work_dir)
        with open(file, 'rb') as stream:
            return {Path(item['img_path']).name: item for item in pickle.load(stream)}

    return run


def test_detector_predicts_as_in_a_test(
    repo: Path,
    detection_config: Path,
    detection_run: Path,
    tiny_coco: Path,
    run_tool: Callable,
    tested_predictions: Callable,
    tmp_path: Path,
) -> None:
    checkpoint, out = detection_run / 'epoch_1.pth', tmp_path / 'out'
    images = sorted((tiny_coco / 'images').glob('val*'))
    done = run_tool(
        repo / 'tools/predict.py',
        detection_config,
        checkpoint,
        *images,
        '--out',
        out,
        '--score-thr=0',
        '--device=cpu',
    )
    assert f'{out} holds 4 predictions' in done.stdout
    assert 'Predicting' in done.stdout
    tested = tested_predictions(detection_config, checkpoint)
    assert tested.keys() == {image.name for image in images}
    for image in images:
        record = json.loads((out / f'preds/{image.stem}.json').read_text())
        expected = tested[image.name]['pred_instances']
        assert record.pop('class_names') == [('bright', 'dark')[i] for i in expected['labels']]
        assert record.pop('image') == str(image)
        assert record == {name: expected[name].tolist() for name in ('labels', 'scores', 'bboxes')}
        assert len(record['scores']) > 0, 'the comparison would say nothing'
        picture, drawn = (cv2.imread(str(file)) for file in (image, out / f'vis/{image.name}'))
        assert drawn.shape == picture.shape
        assert (drawn != picture).any()


def test_segmenter_predicts_as_in_a_test(
    repo: Path,
    segmentation_config: Path,
    segmentation_run: Path,
    tiny_maps: Path,
    run_tool: Callable,
    tested_predictions: Callable,
    tmp_path: Path,
) -> None:
    checkpoint, out = segmentation_run / 'best_mIoU_epoch_1.pth', tmp_path / 'out'
    tool = repo / 'tools/predict.py'
    run_tool(tool, segmentation_config, checkpoint, tiny_maps / 'val', '--out', out)
    tested = tested_predictions(segmentation_config, checkpoint)
    assert sorted(tested) == ['0.jpg', '1.jpg']
    for name, item in tested.items():
        stem = Path(name).stem
        label_map = cv2.imread(str(out / f'preds/{stem}.png'), cv2.IMREAD_UNCHANGED)
        assert (label_map == item['pred_sem_seg']['data'][0].numpy()).all()
        record = json.loads((out / f'preds/{stem}.json').read_text())
        assert record['label_map'] == f'{stem}.png'
        assert sum(one['share'] for one in record['classes']) == pytest.approx(1)
        assert cv2.imread(str(out / f'vis/{name}')).shape == (64, 96, 3)


@pytest.fixture
def classification_config(write_config: Callable, tmp_path: Path) -> Path:
    """Write a config of MMPretrain, and two images of each of two classes."""
    pytest.importorskip('mmpretrain')
    rng = np.random.default_rng(0)
    for name, brightness in (('bright', 200), ('dark', 30)):
        (tmp_path / 'data' / name).mkdir(parents=True)
        for i in range(2):
            image = rng.normal(brightness, 20, (32, 40 + 8 * i, 3)).clip(0, 255)
            cv2.imwrite(str(tmp_path / f'data/{name}/{name}{i}.png'), image.astype(np.uint8))
    return write_config(CLASSIFICATION.format(data=tmp_path / 'data'))


@pytest.fixture
def classifier_weights(classification_config: Path, tmp_path: Path) -> Path:
    """Save random weights of the classifier, with the names of the classes, as mmengine does."""
    from mmpretrain.apis import get_model

    torch.manual_seed(0)
    model = get_model(str(classification_config))
    meta = dict(dataset_meta=dict(classes=['bright', 'dark']))
    file = tmp_path / 'classifier.pth'
    torch.save({'state_dict': model.state_dict(), 'meta': meta}, file)
    return file


def test_classifier_predicts_as_in_a_test(
    repo: Path,
    classification_config: Path,
    classifier_weights: Path,
    run_tool: Callable,
    tested_predictions: Callable,
    tmp_path: Path,
) -> None:
    folders, out = [tmp_path / 'data/bright', tmp_path / 'data/dark'], tmp_path / 'out'
    tool = repo / 'tools/predict.py'
    run_tool(tool, classification_config, classifier_weights, *folders, '--out', out)
    tested = tested_predictions(classification_config, classifier_weights)
    assert len(tested) == 4
    for name, item in tested.items():
        record = json.loads((out / f'preds/{Path(name).stem}.json').read_text())
        label = item['pred_label'].item()
        assert record == {
            'image': item['img_path'],
            'label': label,
            'class_name': ('bright', 'dark')[label],
            'score': item['pred_score'][label].item(),
            'scores': item['pred_score'].tolist(),
        }
        # Enlarged, so that the text can be read.
        height, width, _ = cv2.imread(str(out / f'vis/{name}')).shape
        assert (height, width) == (224, 280 if name.endswith('0.png') else 336)


def test_faults_are_one_sentence(
    detection_config: Path,
    detection_run: Path,
    tiny_coco: Path,
    fail: Callable,
    tmp_path: Path,
) -> None:
    checkpoint, image = detection_run / 'epoch_1.pth', tiny_coco / 'images/val0.png'
    text, empty, absent = tmp_path / 'text.png', tmp_path / 'empty', tmp_path / 'absent.png'
    text.write_text('a picture of a cat')
    empty.mkdir()
    before = sorted(tmp_path.iterdir())

    def said(images: list, out: object = 'out', weights: Path = checkpoint) -> str:
        return fail('predict.py', detection_config, weights, *images, '--out', out)

    assert f'there is no checkpoint file {absent}' in said([image], weights=absent)
    assert f'there is no image or folder {absent}' in said([image, absent])
    assert f'{empty} has no images' in said([empty])
    assert f'{text} is no image that OpenCV reads' in said([image, text])
    assert f'{text} is a file, not a folder' in said([image], out=text)
    device = fail('predict.py', detection_config, checkpoint, image, '--out=out', '--device=tape')
    assert '--device tape cannot be used' in device
    assert sorted(tmp_path.iterdir()) == before


def test_checkpoint_that_does_not_fit_is_one_sentence(
    repo: Path,
    detection_config: Path,
    segmentation_run: Path,
    tiny_coco: Path,
    run_tool: Callable,
    sentence: Callable,
    tmp_path: Path,
) -> None:
    checkpoint, out = segmentation_run / 'epoch_1.pth', tmp_path / 'out'
    tool, images = repo / 'tools/predict.py', tiny_coco / 'images'
    done = run_tool(tool, detection_config, checkpoint, images, '--out', out, code=2)
    assert f'{checkpoint} cannot be evaluated by this config' in sentence(done.stderr)
    assert not out.exists()
