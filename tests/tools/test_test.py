"""tools/test.py evaluates as training did, writes and draws predictions, says what is wrong."""

import pickle
from collections.abc import Callable
from pathlib import Path

import cv2
import pytest
import torch


def test_detector_is_evaluated_as_in_training(
    repo: Path,
    detection_config: Path,
    detection_run: Path,
    run_tool: Callable,
    logged: Callable,
    tested: Callable,
    tmp_path: Path,
) -> None:
    run_tool(
        repo / 'tools/test.py',
        detection_config,
        detection_run / 'epoch_1.pth',
        '--work-dir',
        tmp_path / 'work',
        '--out',
        tmp_path / 'new/predictions.pkl',
        '--show-dir',
        tmp_path / 'drawn',
    )
    metrics = tested(tmp_path / 'work')
    assert metrics == logged(detection_run)[1][-1]
    assert metrics['coco/AR@100'] > 0, 'the comparison would say nothing'
    with open(tmp_path / 'new/predictions.pkl', 'rb') as stream:
        predictions = pickle.load(stream)
    assert [Path(item['img_path']).name for item in predictions] == [
        f'val{i}.png' for i in range(4)
    ]
    for item in predictions:
        found = item['pred_instances']
        assert found['bboxes'].shape == (len(found['scores']), 4)
        assert torch.isfinite(found['bboxes']).all()
    # The ground truth is left, the prediction right.
    drawn = sorted((tmp_path / 'drawn').iterdir())
    assert [file.name for file in drawn] == [f'val{i}.png' for i in range(4)]
    assert {cv2.imread(str(file)).shape for file in drawn} == {(64, 2 * 96, 3)}


def test_classifier_is_evaluated_as_in_training(
    repo: Path,
    classification_config: Path,
    classification_run: Path,
    run_tool: Callable,
    logged: Callable,
    tested: Callable,
    tmp_path: Path,
) -> None:
    run_tool(
        repo / 'tools/test.py',
        classification_config,
        classification_run / 'epoch_1.pth',
        '--work-dir',
        tmp_path / 'work',
        '--out',
        tmp_path / 'predictions.pkl',
        '--show-dir',
        tmp_path / 'drawn',
    )
    assert tested(tmp_path / 'work') == logged(classification_run)[1][-1]
    with open(tmp_path / 'predictions.pkl', 'rb') as stream:
        predictions = pickle.load(stream)
    # The order of the folders.
    assert [item['gt_label'].item() for item in predictions] == [0, 0, 1, 1]
    for item in predictions:
        assert item['pred_score'].sum().item() == pytest.approx(1)
        assert item['pred_score'].argmax() == item['pred_label'].item()
    # MMPretrain names the pictures by file alone, and here those of the two classes are alike.
    drawn = sorted(file.name for file in (tmp_path / 'drawn').iterdir())
    assert drawn == ['0.png_0.png', '1.png_0.png']


def test_segmenter_is_evaluated_as_in_training(
    repo: Path,
    segmentation_config: Path,
    segmentation_run: Path,
    run_tool: Callable,
    logged: Callable,
    tested: Callable,
    tmp_path: Path,
) -> None:
    run_tool(
        repo / 'tools/test.py',
        segmentation_config,
        segmentation_run / 'best_mIoU_epoch_1.pth',
        '--work-dir',
        tmp_path / 'work',
        '--out',
        tmp_path / 'predictions.pickle',
        '--show-dir',
        tmp_path / 'drawn',
    )
    metrics = tested(tmp_path / 'work')
    assert metrics == logged(segmentation_run)[1][-1]
    assert metrics['mIoU'] > 0, 'the comparison would say nothing'
    with open(tmp_path / 'predictions.pickle', 'rb') as stream:
        predictions = pickle.load(stream)
    assert len(predictions) == 2
    assert predictions[0]['pred_sem_seg']['data'].shape == (1, 64, 96)
    assert len(list((tmp_path / 'drawn').rglob('*.png'))) == 2


def test_faults_are_one_sentence(
    detection_config: Path, detection_run: Path, fail: Callable, tmp_path: Path
) -> None:
    absent = tmp_path / 'absent'
    said = fail('test.py', f'{absent}.py', f'{absent}.pth')
    assert f'there is no config file {absent}.py' in said
    said = fail('test.py', detection_config, f'{absent}.pth')
    assert f'there is no checkpoint file {absent}.pth' in said
    checkpoint = detection_run / 'epoch_1.pth'
    assert '--tta needs tta_model' in fail('test.py', detection_config, checkpoint, '--tta')
    said = fail(
        'test.py',
        detection_config,
        checkpoint,
        '--show-dir=drawn',
        '--cfg-options',
        'default_hooks.visualization=None',
    )
    assert '--show-dir needs a visualization hook' in said
    said = fail('test.py', detection_config, checkpoint, '--out=predictions.json')
    assert '--out must name a .pkl or .pickle file, not predictions.json' in said
    assert list(tmp_path.iterdir()) == []


def test_file_that_is_no_checkpoint_is_one_sentence(
    repo: Path,
    detection_config: Path,
    run_tool: Callable,
    sentence: Callable,
    tmp_path: Path,
) -> None:
    text = tmp_path / 'text.pth'
    text.write_text('weights are elsewhere')
    work_dir = tmp_path / 'work'
    tool = repo / 'tools/test.py'
    done = run_tool(tool, detection_config, text, '--work-dir', work_dir, code=2)
    assert f'{text} is not a checkpoint' in sentence(done.stderr)
