"""Settings of loaders, loops and schedules that cannot be meant are told before the run."""

from typing import Any

import pytest
from mmengine.config import Config

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.settings import check_settings

LOADER = dict(dataset=dict(type='A'), sampler=dict(type='DefaultSampler'), batch_size=2)


def check(loader: dict[str, Any], **config: Any) -> None:
    check_settings(
        Config(dict(train_dataloader={**LOADER, **loader}, **config)), 'train_dataloader'
    )


@pytest.mark.parametrize(
    ('loader', 'said'),
    [
        (dict(num_workers=-1), 'num_workers must be a whole number of at least 0, not -1'),
        (dict(num_workers='2'), "num_workers must be a whole number of at least 0, not '2'"),
        (dict(batch_size=0), 'batch_size must be a whole number of at least 1, not 0'),
        (dict(batch_size=True), 'batch_size must be a whole number'),
        (dict(prefetch_factor=0, num_workers=1), 'prefetch_factor must be a whole number of at l'),
        (dict(prefetch_factor=2), 'there are no worker processes'),
        (dict(persistent_workers=True), 'set train_dataloader.num_workers to 1 or more'),
        (dict(timeout=-1), 'timeout must be 0 or more seconds'),
        (dict(dataset=None), 'train_dataloader has no dataset'),
    ],
)
def test_loader(loader: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        check(loader)


@pytest.mark.parametrize(
    'loader',
    [
        dict(num_workers=2, persistent_workers=True, prefetch_factor=4, timeout=60),
        dict(num_workers=0, persistent_workers=False, prefetch_factor=None, timeout=0),
    ],
)
def test_loader_that_torch_takes(loader: dict[str, Any]) -> None:
    check(loader)


@pytest.mark.parametrize(
    ('config', 'said'),
    [
        (dict(train_cfg=dict(max_epochs=0)), 'train_cfg.max_epochs must be a whole number'),
        (dict(train_cfg=dict(val_interval='1')), 'train_cfg.val_interval must be'),
        (dict(param_scheduler=[dict(milestones='late')]), 'param_scheduler.0.milestones must be'),
        (dict(param_scheduler=[dict(T_max=0)]), 'param_scheduler.0.T_max must be'),
        (dict(param_scheduler=[dict(milestones=[7.5])]), 'milestones must be whole numbers'),
        (dict(param_scheduler=[{}, dict(gamma=-0.1)]), 'param_scheduler.1.gamma must be 0 or more'),
    ],
)
def test_loop_and_schedule(config: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        check({}, **config)


@pytest.mark.parametrize(
    'config',
    [
        dict(train_cfg=dict(val_interval=57300.0)),  # In the zoo, for V3Det.
        dict(param_scheduler=[dict(T_max=7.5), dict(milestones=[8.0, 11])]),
        dict(param_scheduler=[dict(milestones=[7.5], convert_to_iter_based=True)]),
    ],
)
def test_quotients_are_numbers_too(config: dict[str, Any]) -> None:
    check({}, **config)


def test_order_that_is_always_the_same_is_a_warning(capsys: pytest.CaptureFixture) -> None:
    check(dict(sampler=None))
    assert capsys.readouterr().err.startswith('warning: train_dataloader has no sampler')
    check({})
    assert capsys.readouterr().err == ''
