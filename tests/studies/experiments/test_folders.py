"""Finished runs, unfinished runs and runs with other settings are told apart."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from mmengine.config import Config

from sn_openmmlab.errors import UsageError
from studies.experiments.folders import is_finished, settings_digest


def test_run_is_finished_once_it_is_marked(
    make_run: Callable, finish: Callable, tmp_path: Path
) -> None:
    run = make_run()
    assert not is_finished(run, tmp_path)
    folder = finish(run, tmp_path)
    assert is_finished(run, tmp_path)
    (folder / 'done').unlink()
    assert not is_finished(run, tmp_path)


@pytest.mark.parametrize(
    ('change', 'difference'),
    [
        ({'train_dataloader.batch_size': 4}, 'train_dataloader.batch_size=4, .* needs 2'),
        ({'schedule.0.seed': 1}, 'schedule.0.seed=1, .* needs 0'),
        ({'schedule.1.milestones': (2,)}, 'schedule.1.milestones.0=2, .* needs 3'),
        ({'schedule.1.milestones': ()}, 'schedule.1.milestones.0=nothing, .* needs 3'),
        ({'model.norm': 'gn'}, 'model.norm=gn, .* needs sn'),
        ({'model.init_cfg': None}, 'model.init_cfg=None, .* needs nothing'),
        ({'load_from': 'other.pth'}, 'load_from=other.pth, .* needs nothing'),
    ],
)
def test_run_of_other_settings_is_refused(
    change: dict, difference: str, make_run: Callable, finish: Callable, tmp_path: Path
) -> None:
    run = make_run()
    file = finish(run, tmp_path) / 'sn_digits.py'
    config = Config.fromfile(file)
    config.merge_from_dict(change)
    config.dump(file)
    with pytest.raises(UsageError, match=f'sn_b2_s0 was trained with {difference}: '):
        is_finished(run, tmp_path)


def test_settings_are_the_same_wherever_the_folder_of_the_start_is(make_run: Callable) -> None:
    digests = [
        settings_digest(replace(make_run(), options={'load_from': start}))
        for start in ('/here/sn_b2_s0/epoch_6.pth', 'work_dirs/sn_b2_s0/epoch_6.pth', 'sn_b2_s1/e')
    ]
    assert digests[0] == digests[1] != digests[2]


def test_run_whose_config_has_changed_since_is_refused(
    make_run: Callable, finish: Callable, tmp_path: Path
) -> None:
    run = make_run()
    finish(run, tmp_path)
    with Path(run.config).open('a') as file:
        file.write('resize = dict(scale=(256, 192))\n')
    with pytest.raises(UsageError, match=r'with resize\.scale\.0=nothing, .* needs 256'):
        is_finished(run, tmp_path)


def test_run_of_another_config_is_refused(
    make_run: Callable, finish: Callable, tmp_path: Path
) -> None:
    run = make_run()
    finish(run, tmp_path)
    with pytest.raises(UsageError, match=r'there is no config file .*other\.py'):
        is_finished(replace(run, config='configs/other.py'), tmp_path)
