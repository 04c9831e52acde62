"""A finished run is told from an unfinished one, and from one of other settings."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sn_openmmlab.errors import UsageError
from sn_openmmlab.experiments.folders import is_finished


def test_only_with_its_mark_a_run_is_finished(
    make_run: Callable, finish: Callable, tmp_path: Path
) -> None:
    run = make_run()
    assert not is_finished(run, tmp_path)
    folder = finish(run, tmp_path)
    assert is_finished(run, tmp_path)
    (folder / 'done').unlink()
    assert not is_finished(run, tmp_path)


@pytest.mark.parametrize(
    ('key', 'value', 'found'),
    [
        ('train_dataloader.batch_size', 4, '=2,'),
        ('schedule.0.seed', 1, '=0,'),
        ('schedule.2.seed', 1, '=None,'),
        ('optim_wrapper.lr', 0.1, '=None,'),
    ],
)
def test_run_of_other_settings_is_refused(
    key: str, value: float, found: str, make_run: Callable, finish: Callable, tmp_path: Path
) -> None:
    run = make_run()
    finish(run, tmp_path)
    with pytest.raises(UsageError, match=f'sn_b2_s0 was trained with {key}{found} .*{value}: '):
        is_finished(replace(run, options={**run.options, key: value}), tmp_path)


def test_run_of_another_config_is_refused(
    make_run: Callable, finish: Callable, tmp_path: Path
) -> None:
    run = make_run()
    finish(run, tmp_path)
    with pytest.raises(UsageError, match=r'there is no config file .*other\.py'):
        is_finished(replace(run, config='configs/other.py'), tmp_path)
