"""tools/report.py gathers what a training left, of each toolbox."""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

FILES = {
    'checkpoint.pth',
    'config.py',
    'curves.png',
    'importance_ratios.csv',
    'importance_ratios.png',
    'metrics.json',
    'predictions.png',
    'train.log',
}


@pytest.mark.parametrize(
    ('toolbox', 'layers', 'height', 'metric'),
    # ResNet-18 has 20 norm layers, the FPN 8, the box head 4; the FCN head 2, of its convolution
    # and of the one that joins the features to its output. The classifier has the stem and two
    # stages of ResNet-18, each with two blocks of two, and two shortcuts.
    [
        ('detection', 20 + 8 + 4, 2 * 250, 'coco/bbox_mAP'),
        ('segmentation', 20 + 2, 250, 'mIoU'),
        ('classification', 1 + 2 * 4 + 2, 190, 'accuracy/top1'),
    ],
)
def test_report_has_everything(
    toolbox: str,
    layers: int,
    height: int,
    metric: str,
    request: pytest.FixtureRequest,
    repo: Path,
    run_tool: Callable,
    logged: Callable,
    tmp_path: Path,
) -> None:
    run = request.getfixturevalue(f'{toolbox}_run')
    config = request.getfixturevalue(f'{toolbox}_config')
    work_dir = tmp_path / 'work'
    shutil.copytree(run, work_dir)
    before = {path.relative_to(work_dir) for path in work_dir.rglob('*')}
    done = run_tool(repo / 'tools/report.py', config, '--work-dir', work_dir)

    report = work_dir / 'report'
    assert {file.name for file in report.iterdir()} == FILES
    after = {path.relative_to(work_dir) for path in work_dir.rglob('*')}
    assert after - before == {Path('report'), *(Path('report', name) for name in FILES)}
    assert (report / 'checkpoint.pth').read_bytes() == (run / 'epoch_1.pth').read_bytes()
    assert 'Saving checkpoint at 1 epochs' in (report / 'train.log').read_text()
    assert f"work_dir = '{run}'" in (report / 'config.py').read_text()

    metrics = json.loads((report / 'metrics.json').read_text())
    assert metrics == logged(run)[1][-1]
    assert f'{metric}: {metrics[metric]}\n' in done.stdout
    assert all(str(report / name) in done.stdout for name in FILES)

    with open(report / 'importance_ratios.csv', newline='') as stream:
        table = list(csv.DictReader(stream))
    assert len(table) == 3 * layers
    assert {row['scope'] for row in table} == {'in', 'ln', 'bn'}
    for kind in ('mean_ratio', 'var_ratio'):
        ratios = np.array([float(row[kind]) for row in table]).reshape(layers, 3)
        assert ratios.sum(1) == pytest.approx(np.ones(layers), abs=1e-5)
        assert not np.allclose(ratios, 1 / 3, rtol=0, atol=1e-6), (
            'the trained weights were not loaded'
        )

    predictions = imread(report / 'predictions.png')
    assert predictions.shape == (height, 1200, 4)
    assert predictions[..., :3].std() > 0.1


def test_faults_are_one_sentence(detection_config: Path, fail: Callable, tmp_path: Path) -> None:
    said = fail('report.py', detection_config, '--work-dir', tmp_path / 'absent')
    assert f'{tmp_path / "absent"} holds no finished training: run tools/train.py first' in said
    log = tmp_path / 'work/20260101_000000/vis_data/scalars.json'
    log.parent.mkdir(parents=True)
    log.write_text('')
    said = fail('report.py', detection_config, '--work-dir', tmp_path / 'work')
    assert f'{tmp_path / "work"} holds no checkpoint: run tools/train.py first' in said
    assert not (tmp_path / 'work/report').exists()
