"""A training of some seconds is watched, ended and recorded; one that fails is a sentence."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('psutil')
from mmengine.runner import Runner

from sn_openmmlab.errors import UsageError
from studies.experiments import soak as soaks
from studies.experiments.deadline_hook import DeadlineHook
from studies.experiments.soak import COLUMNS, soak, soak_config
from tests.small_run import register, small_config

# Logs as mmengine does, two iterations a second.
TRAINING = """
import json, sys, time
from pathlib import Path
logs = Path(sys.argv[3], 'run/vis_data')
logs.mkdir(parents=True)
with open(logs / 'scalars.json', 'w') as file:
    for i in range(1, 9):
        time.sleep(0.5)
        print(json.dumps({'loss': 1.0, 'iter': i, 'step': i}), file=file, flush=True)
    print(json.dumps({'coco/bbox_mAP': 0.25, 'step': 1}), file=file)
    file.write('{"cut')
sys.exit(int(Path(sys.argv[3]).parent.name == 'fails'))
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / 'train.py'
    file.write_text(TRAINING)
    monkeypatch.setattr(soaks, '_SHORTEST', 0.2)
    monkeypatch.setattr(soaks, '_SAVE_EVERY', 1.0)
    return file


def test_a_training_is_sampled_and_recorded(script: Path, tmp_path: Path) -> None:
    saved: list[dict[str, Any]] = []
    soak(script, tmp_path / 'work', 1 / 3600, lambda data: saved.append(data | {
        'samples': list(data['samples'])
    }))  # fmt: skip
    assert len(saved) >= 3
    assert [data['exit_code'] for data in saved] == [None] * (len(saved) - 1) + [0]
    data = saved[-1]
    assert data['box_aps'] == [0.25]
    assert data['columns'] == COLUMNS
    columns = dict(zip(COLUMNS, zip(*data['samples'], strict=True), strict=True))
    assert len(columns['seconds']) >= 8
    assert list(columns['iteration']) == sorted(columns['iteration'])
    assert columns['iteration'][-1] >= 7
    assert min(columns['rss']) > 1e6
    assert max(columns['threads']) == 1


def test_a_training_that_fails_is_a_sentence(script: Path, tmp_path: Path) -> None:
    saved: list[dict[str, Any]] = []
    with pytest.raises(UsageError, match=r'ended with exit code 1: see .*training\.log'):
        soak(script, tmp_path / 'fails', 1 / 3600, saved.append)
    assert saved[-1]['exit_code'] == 1


def test_what_there_is_is_saved_when_the_command_is_stopped(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[dict[str, Any]] = []

    def stop(data: dict[str, Any]) -> None:
        saved.append(data)
        if len(saved) == 1:
            raise SystemExit(143)

    with pytest.raises(SystemExit):
        soak(script, tmp_path / 'work', 1 / 3600, stop)
    assert len(saved) == 2


def test_the_config_trains_on_at_one_rate(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repo)
    config = soak_config(2)
    assert config.train_cfg.val_interval == 1
    assert [schedule['type'] for schedule in config.param_scheduler] == ['LinearLR']
    assert config.custom_hooks == [dict(type='DeadlineHook', seconds=7200)]
    assert config.default_hooks.checkpoint.interval == 1


@pytest.mark.parametrize(('seconds', 'epochs'), [(0, 1), (3600, 2)])
def test_the_deadline_ends_with_an_epoch(
    seconds: float, epochs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(monkeypatch)
    runner = Runner.from_cfg(small_config(tmp_path))
    runner.register_hook(DeadlineHook(seconds))
    runner.train()
    assert (runner.epoch, runner.iter) == (epochs, 2 * epochs)
    assert (tmp_path / f'epoch_{epochs}.pth').is_file()
