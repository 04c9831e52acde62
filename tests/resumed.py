"""Trainings that should be the same, bit for bit: how to make them so, and a comparison."""

from pathlib import Path
from typing import Any

import torch

# Our tools add the hook to every training; a toolbox's tool with these options does what they do.
EXACT_RESUME = ('--cfg-options', 'default_hooks.resume.type=ExactResumeHook')
# What a checkpoint may hold of the state of a training.
_PARTS = ('state_dict', 'ema_state_dict', 'optimizer', 'param_schedulers')
_TIMES = ('time', 'memory')


def assert_same_training(file: Path, expected: Path, metrics: bool = True) -> None:
    """Assert that two checkpoints hold the same state and the same log, times apart.

    Args:
        file: a checkpoint of mmengine.
        expected: the other one.
        metrics: whether the log is to hold the same metrics of validations, too.
    """
    found, other = (_state(path, metrics) for path in (file, expected))
    assert found.keys() == other.keys()
    for name, value in found.items():
        assert _is_same(value, other[name]), f'{name} differs: {value} and {other[name]}'


def _state(file: Path, metrics: bool) -> dict[str, Any]:
    checkpoint = torch.load(file, weights_only=False)
    logged = {
        name: [list(map(float, column)) for column in values.data]
        for name, values in checkpoint['message_hub']['log_scalars'].items()
        if not any(word in name for word in _TIMES) and (metrics or name.startswith('train/'))
    }
    parts = {name: checkpoint[name] for name in _PARTS if name in checkpoint}
    where = {name: checkpoint['meta'][name] for name in ('epoch', 'iter')}
    return {**parts, 'logged': logged, 'where': where}


def _is_same(value: Any, other: Any) -> bool:
    if type(value) is not type(other):
        return False
    if isinstance(value, torch.Tensor):
        return value.dtype == other.dtype and torch.equal(value, other)
    if isinstance(value, dict):
        return value.keys() == other.keys() and all(_is_same(value[k], other[k]) for k in value)
    if isinstance(value, list | tuple):
        return len(value) == len(other) and all(map(_is_same, value, other))
    return value == other or (value != value and other != other)
