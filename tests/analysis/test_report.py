"""The report of a run is complete or missing."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from sn_openmmlab.analysis import report
from sn_openmmlab.layers.switch_norm import SwitchNorm

SCALARS = """
{"loss": 2.0, "loss_cls": 1.5, "epoch": 1, "step": 1}
{"coco/bbox_mAP": 0.25, "coco/bbox_mAP_s": -1.0, "time": 0.1, "step": 1}
{"loss": 1.0, "loss_cls": 0.5, "epoch": 2, "step": 2}
{"coco/bbox_mAP": 0.5, "coco/bbox_mAP_s": -1.0, "time": 0.1, "step": 2}
"""
RUN = '20260101_000000'


class FakeRunner:
    """The part of a runner that a report uses."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def load_checkpoint(self, file: str) -> None:
        self.model.load_state_dict(torch.load(file)['state_dict'])


@pytest.fixture(autouse=True)
def no_dataset(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pictures of predictions are tested with a real runner, in tests/tools."""
    monkeypatch.setattr(report, 'draw_prediction_grid', lambda _, file: file.write_text('grid'))


@pytest.fixture
def work_dir(tmp_path: Path) -> Path:
    """The work folder of a run of two epochs, whose layer learned ratios of 1/6, 2/6 and 3/6."""
    work_dir = tmp_path / 'work'
    run = work_dir / RUN
    (run / 'vis_data').mkdir(parents=True)
    (run / 'vis_data/scalars.json').write_text(SCALARS.strip())
    (run / 'vis_data/config.py').write_text('max_epochs = 2\n')
    (run / f'{RUN}.log').write_text('the log\n')
    model = nn.Sequential(SwitchNorm(2))
    with torch.no_grad():
        model[0].mean_weight.copy_(torch.tensor([1.0, 2.0, 3.0]).log())
    torch.save({'state_dict': model.state_dict()}, work_dir / 'epoch_2.pth')
    (work_dir / 'last_checkpoint').write_text(str(work_dir / 'epoch_2.pth'))
    return work_dir


def write(work_dir: Path, model: nn.Module | None = None) -> dict[str, float]:
    runner = FakeRunner(nn.Sequential(SwitchNorm(2)) if model is None else model)
    return report.write_report(
        runner, work_dir / 'epoch_2.pth', [work_dir / RUN], work_dir / 'report'
    )


def test_report_holds_all_of_the_run(work_dir: Path) -> None:
    metrics = {'coco/bbox_mAP': 0.5, 'coco/bbox_mAP_s': -1.0}
    assert write(work_dir) == metrics
    folder = work_dir / 'report'
    assert sorted(file.name for file in folder.iterdir()) == [
        'checkpoint.pth',
        'config.py',
        'curves.png',
        'importance_ratios.csv',
        'importance_ratios.png',
        'metrics.json',
        'predictions.png',
        'train.log',
    ]
    assert json.loads((folder / 'metrics.json').read_text()) == metrics
    assert (folder / 'config.py').read_text() == 'max_epochs = 2\n'
    assert (folder / 'train.log').read_text() == 'the log\n'
    same = (work_dir / 'epoch_2.pth').read_bytes()
    assert (folder / 'checkpoint.pth').read_bytes() == same
    assert (folder / 'importance_ratios.csv').read_text().split() == [
        'run,layer,part,depth,stride,conv,scope,mean_ratio,var_ratio',
        'work,0,0,0,,none,in,0.166667,0.333333',
        'work,0,0,0,,none,ln,0.333333,0.333333',
        'work,0,0,0,,none,bn,0.500000,0.333333',
    ]


def test_report_of_a_model_without_the_layer_has_no_chart(work_dir: Path) -> None:
    torch.save({'state_dict': nn.Linear(1, 1).state_dict()}, work_dir / 'epoch_2.pth')
    write(work_dir, nn.Linear(1, 1))
    names = {file.name for file in (work_dir / 'report').iterdir()}
    assert 'importance_ratios.png' not in names
    assert {'importance_ratios.csv', 'curves.png'} < names


def test_report_is_replaced_whole(work_dir: Path) -> None:
    (work_dir / 'report/old').mkdir(parents=True)
    (work_dir / 'report/old/file').touch()
    (work_dir / 'report/metrics.json').write_text('old')
    before = {path.name for path in work_dir.iterdir()}
    write(work_dir)
    assert not (work_dir / 'report/old').exists()
    assert 'old' not in (work_dir / 'report/metrics.json').read_text()
    assert {path.name for path in work_dir.iterdir()} == before


@pytest.mark.parametrize('old', [True, False])
@pytest.mark.parametrize(
    'step', ['draw_curves', 'draw_prediction_grid', 'csv_table', 'layers_figure']
)
def test_failure_leaves_the_old_report_or_none(
    step: str, old: bool, work_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if old:
        (work_dir / 'report').mkdir()
        (work_dir / 'report/metrics.json').write_text('old')
    before = {path.name for path in work_dir.iterdir()}

    def fail(*_: object) -> None:
        raise OSError('the disk is full')

    monkeypatch.setattr(report, step, fail)
    with pytest.raises(OSError, match='the disk is full'):
        write(work_dir)
    assert {path.name for path in work_dir.iterdir()} == before
    if old:
        assert [file.read_text() for file in (work_dir / 'report').iterdir()] == ['old']
