"""Records of runs: from a work folder made by hand, with ratios worked out by hand."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from sn_openmmlab.errors import UsageError
from studies.experiments import records
from studies.experiments.folders import settings_digest
from studies.experiments.records import Record

METRICS = {
    'coco/bbox_mAP': [0.25, 0.5],
    'coco/bbox_mAP_50': [0.5, 0.75],
    'coco/bbox_mAP_75': [0.2, 0.4],
}


def test_record_holds_metrics_and_ratios_by_part(
    make_run: Callable, finish: Callable, tmp_path: Path
) -> None:
    run = make_run('sn', 4, 2)
    finish(run, tmp_path)
    record = records.read_record(run, tmp_path)
    assert (record.variant, record.batch, record.seed) == ('sn', 4, 2)
    assert record.metrics == METRICS
    equal = {'in': 1 / 3, 'ln': 1 / 3, 'bn': 1 / 3}
    # The layers' w: 1/6 2/6 3/6 and 1/4 1/4 2/4; 2/4 1/4 1/4; equal. Of the head w′: 1/4 2/4 1/4.
    expected = {
        'backbone': ({'in': 5 / 24, 'ln': 7 / 24, 'bn': 12 / 24}, equal),
        'neck': ({'in': 1 / 2, 'ln': 1 / 4, 'bn': 1 / 4}, equal),
        'bbox_head': (equal, {'in': 1 / 4, 'ln': 1 / 2, 'bn': 1 / 4}),
        'all': (
            {'in': 15 / 48, 'ln': 14 / 48, 'bn': 19 / 48},
            {'in': 15 / 48, 'ln': 18 / 48, 'bn': 15 / 48},
        ),
    }
    assert list(record.ratios) == list(expected)
    for part, (mean, var) in expected.items():
        assert record.ratios[part]['mean'] == pytest.approx(mean)
        assert record.ratios[part]['var'] == pytest.approx(var)


def test_model_of_another_norm_has_no_ratios(
    make_run: Callable, finish: Callable, tmp_path: Path
) -> None:
    run = make_run('bn', 2, 0)
    finish(run, tmp_path)
    expected = Record('bn', 2, 0, METRICS, {}, settings_digest(run))
    assert records.read_record(run, tmp_path) == expected


def test_runs_of_other_settings_have_another_digest(make_run: Callable) -> None:
    run = make_run('bn', 2, 0)
    others = [replace(run, options={**run.options, 'schedule.0.seed': n}) for n in (0, 1)]
    assert settings_digest(run) == settings_digest(others[0]) != settings_digest(others[1])


@pytest.mark.parametrize('lost', ['20260101_000000/vis_data/scalars.json', 'epoch_2.pth'])
def test_missing_file_of_a_folder_is_reported(
    lost: str, make_run: Callable, finish: Callable, tmp_path: Path
) -> None:
    run = make_run()
    (finish(run, tmp_path) / lost).unlink()
    with pytest.raises(UsageError, match='sn_b2_s0 holds no'):
        records.read_record(run, tmp_path)


def test_run_of_other_settings_is_not_read(
    make_run: Callable, finish: Callable, tmp_path: Path
) -> None:
    run = make_run()
    finish(run, tmp_path)
    with pytest.raises(UsageError, match='batch_size=2, but the experiment needs 8'):
        options = {**run.options, 'train_dataloader.batch_size': 8}
        records.read_record(replace(run, options=options), tmp_path)


class Trap:
    """What unpickling would turn into a call."""

    def __reduce__(self) -> tuple:
        return (open, ('trapped', 'w'))


def test_checkpoint_that_could_run_code_is_refused(
    make_run: Callable, finish: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = make_run()
    torch.save({'state_dict': Trap()}, finish(run, tmp_path) / 'epoch_2.pth')
    with pytest.raises(UsageError, match='could run code'):
        records.read_record(run, tmp_path)
    assert not (tmp_path / 'trapped').exists()


def test_written_records_are_read_back(make_record: Callable, tmp_path: Path) -> None:
    written = [make_record('sn', 2, 0, (0.25, 0.5)), make_record('gn', 2, 0, (0.5, 0.75))]
    file = tmp_path / 'runs.json'
    records.write_records(written, {'device': 'abacus', 'threads': 1}, file)
    assert records.read_records(file) == (written, {'device': 'abacus', 'threads': 1})
    assert len(file.read_text().splitlines()) == 2 + 2 + 1
    data = json.loads(file.read_text())
    assert data['machine'] == {'device': 'abacus', 'threads': 1}
    assert data['runs'][1]['metrics']['coco/bbox_mAP'] == [0.5, 0.75]
