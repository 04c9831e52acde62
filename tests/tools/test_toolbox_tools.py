"""The toolboxes' own tools run the same configs, and do what ours do."""

import pickle
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

import sn_openmmlab  # noqa: F401  # allows what checkpoints of mmengine hold
from tests.resumed import EXACT_RESUME


def tool_of(toolbox: str, name: str) -> Path:
    """Return a tool inside an installed toolbox."""
    return Path(find_spec(toolbox).origin).parent / '.mim' / 'tools' / name


def test_mmdetection_trains_as_we_do(
    detection_config: Path,
    detection_run: Path,
    run_tool: Callable,
    logged: Callable,
    tmp_path: Path,
) -> None:
    run_tool(tool_of('mmdet', 'train.py'), detection_config, '--work-dir', tmp_path, *EXACT_RESUME)
    assert logged(tmp_path) == logged(detection_run)


def test_mmdetection_continues_our_training(
    detection_config: Path, detection_run: Path, run_tool: Callable, tmp_path: Path
) -> None:
    run_tool(
        tool_of('mmdet', 'train.py'),
        detection_config,
        '--work-dir',
        tmp_path,
        '--resume',
        detection_run / 'epoch_1.pth',
        '--cfg-options',
        'train_cfg.max_epochs=2',
    )
    checkpoint = torch.load(tmp_path / 'epoch_2.pth', weights_only=True)
    assert (checkpoint['meta']['epoch'], checkpoint['meta']['iter']) == (2, 8)
    assert len(checkpoint['message_hub']['log_scalars']['train/loss'].data[0]) == 8


def test_mmdetection_evaluates_as_we_do(
    detection_config: Path,
    detection_run: Path,
    run_tool: Callable,
    logged: Callable,
    tested: Callable,
    tmp_path: Path,
) -> None:
    run_tool(
        tool_of('mmdet', 'test.py'),
        detection_config,
        detection_run / 'epoch_1.pth',
        '--work-dir',
        tmp_path / 'work',
        '--out',
        tmp_path / 'predictions.pkl',
    )
    assert tested(tmp_path / 'work') == logged(detection_run)[1][-1]
    with open(tmp_path / 'predictions.pkl', 'rb') as stream:
        assert len(pickle.load(stream)) == 4


def test_mmsegmentation_trains_and_evaluates_as_we_do(
    segmentation_config: Path,
    segmentation_run: Path,
    run_tool: Callable,
    logged: Callable,
    tested: Callable,
    tmp_path: Path,
) -> None:
    trained = tmp_path / 'trained'
    run_tool(
        tool_of('mmseg', 'train.py'), segmentation_config, '--work-dir', trained, *EXACT_RESUME
    )
    assert logged(trained) == logged(segmentation_run)
    run_tool(
        tool_of('mmseg', 'test.py'),
        segmentation_config,
        segmentation_run / 'epoch_1.pth',
        '--work-dir',
        tmp_path / 'tested',
    )
    assert tested(tmp_path / 'tested') == logged(segmentation_run)[1][-1]


@pytest.mark.parametrize('tool', ['ours', 'of mmseg'])
def test_segmentation_that_kept_its_best_is_continued(
    tool: str,
    repo: Path,
    segmentation_config: Path,
    segmentation_run: Path,
    run_tool: Callable,
    tmp_path: Path,
) -> None:
    shutil.copytree(segmentation_run, tmp_path / 'work')
    run_tool(
        repo / 'tools/train.py' if tool == 'ours' else tool_of('mmseg', 'train.py'),
        segmentation_config,
        '--work-dir',
        tmp_path / 'work',
        '--resume',
        '--cfg-options',
        'train_cfg.max_epochs=2',
    )
    checkpoint = torch.load(tmp_path / 'work/epoch_2.pth', weights_only=True)
    assert (checkpoint['meta']['epoch'], checkpoint['meta']['iter']) == (2, 4)
    before = torch.load(segmentation_run / 'epoch_1.pth', weights_only=True)
    best = checkpoint['message_hub']['runtime_info']['best_score']
    assert best >= before['message_hub']['runtime_info']['best_score'] > 0
