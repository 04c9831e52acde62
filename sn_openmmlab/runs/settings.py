"""The check of the settings of loaders, loops and schedules, before anything is built."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from mmengine.config import Config

from sn_openmmlab.errors import UsageError, warn_user
from sn_openmmlab.runs.numbers import check_numbers

_TRAINING = 'train_dataloader'


def check_settings(config: Config, *loaders: str) -> None:
    """Raise UsageError if a number of a loader, of the loop or of a schedule cannot be meant.

    Warn of a training whose images come in the same order in each epoch.

    Args:
        config: the config of the run.
        loaders: the data loaders that the run uses; those that the config lacks are skipped. With
            ``'train_dataloader'`` the loop and the schedules of the training are checked, too.
    """
    check_numbers(config)
    for name in loaders:
        if isinstance(config.get(name), Mapping):
            _check_loader(name, config[name])
    if _TRAINING in loaders:
        _check_loop(config.get('train_cfg'))
        schedules = config.get('param_scheduler')
        for i, schedule in enumerate(schedules if isinstance(schedules, list | tuple) else []):
            if isinstance(schedule, Mapping):
                _check_schedule(f'param_scheduler.{i}', schedule)


def _check_loader(name: str, loader: Mapping[str, Any]) -> None:
    if not loader.get('dataset'):
        raise UsageError(f'{name} has no dataset: name one in {name}.dataset of the config.')
    workers = loader.get('num_workers', 0)
    _check_count(f'{name}.num_workers', workers, least=0)
    if 'batch_size' in loader:
        _check_count(f'{name}.batch_size', loader['batch_size'], least=1)
    timeout = loader.get('timeout', 0)
    if not isinstance(timeout, Real) or timeout < 0:
        raise UsageError(f'{name}.timeout must be 0 or more seconds, not {timeout!r}.')
    if loader.get('prefetch_factor') is not None:
        _check_count(f'{name}.prefetch_factor', loader['prefetch_factor'], least=1)
    if not workers:
        _check_without_workers(name, loader)
    orders = [loader.get(key) for key in ('sampler', 'batch_sampler', 'shuffle')]
    if name == _TRAINING and not any(orders):
        warn_user(
            f'{name} has no sampler, so its images come in the same order in each epoch: set '
            f"{name}.sampler=dict(type='DefaultSampler', shuffle=True)."
        )


def _check_without_workers(name: str, loader: Mapping[str, Any]) -> None:
    """Check what torch allows only for a loader with processes of its own."""
    for key, off in (('persistent_workers', False), ('prefetch_factor', None), ('timeout', 0)):
        if loader.get(key, off) not in (off, None):
            raise UsageError(
                f'{name}.{key} is {loader[key]!r}, but there are no worker processes: set '
                f'{name}.num_workers to 1 or more, or {name}.{key}={off}.'
            )


def _check_loop(loop: Any) -> None:
    for key in ('max_epochs', 'max_iters', 'val_interval'):
        if isinstance(loop, Mapping) and loop.get(key) is not None:
            value = loop[key]
            # mmengine divides by it only.
            whole = key == 'val_interval' and isinstance(value, float) and value.is_integer()
            _check_count(f'train_cfg.{key}', int(value) if whole else value, least=1)


def _check_schedule(place: str, schedule: Mapping[str, Any]) -> None:
    for key in ('T_max', 'step_size'):
        value = schedule.get(key)
        if value is not None and (not _is_number(value) or value <= 0):
            raise UsageError(f'{place}.{key} must be a positive number, not {value!r}.')
    if 'milestones' in schedule:
        steps = schedule['milestones']
        if not isinstance(steps, list | tuple) or not all(map(_is_number, steps)):
            raise UsageError(
                f'{place}.milestones must be a list of numbers, as in [8, 11], not {steps!r}.'
            )
        # Those that fall between two epochs would never come.
        if not schedule.get('convert_to_iter_based') and any(x % 1 for x in steps):
            raise UsageError(f'{place}.milestones must be whole numbers, not {steps!r}.')
    for key in ('gamma', 'power', 'start_factor', 'end_factor'):
        value = schedule.get(key, 0)
        if not isinstance(value, Real) or value < 0:
            raise UsageError(f'{place}.{key} must be 0 or more, not {value!r}.')


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _check_count(place: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise UsageError(f'{place} must be a whole number of at least {least}, not {value!r}.')
