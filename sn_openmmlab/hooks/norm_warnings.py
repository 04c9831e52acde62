"""Warnings of settings that act on BatchNorm but not on SN."""

import logging

from mmengine.config import Config
from mmengine.logging import print_log
from torch import nn

from sn_openmmlab.analysis.norms import bare_name
from sn_openmmlab.config_tree import walk
from sn_openmmlab.layers.switch_norm import SwitchNorm

_COUNTS = 'accumulative_counts'


def warn_of_norm_eval(model: nn.Module) -> None:
    """Warn about each part whose ``norm_eval`` does not fix the statistics of its SN layers.

    The toolboxes set only BatchNorm to evaluation mode.

    Args:
        model: in training mode.
    """
    for name, part in _parts_with_norm_eval(model).items():
        layers = [layer for layer in part.modules() if _updates(layer)]
        if not layers:
            continue
        trained = any(p.requires_grad for layer in layers for p in layer.parameters())
        sets = 'has norm_eval=True' if trained else 'freezes its norms and has norm_eval=True'
        unlike = '' if trained else 'They are NOT frozen as BatchNorm would be. '
        place = name or 'the model'
        _warn(
            f'{place} {sets}, which acts on BatchNorm only: {len(layers)} SN layers in it keep '
            f'updating their running statistics. {unlike}To hold them, set norm_eval=True in the '
            f'norm_cfg of SN. To let them update, set norm_eval=False in {place}.'
        )


def warn_of_accumulation(model: nn.Module, config: Config) -> None:
    """Warn if gradients are accumulated while SN layers normalize by their batch.

    mmengine warns about BatchNorm only.

    Args:
        model: in training mode.
        config: of the run.
    """
    counts = [part.get(_COUNTS) for _, part in walk(config.get('optim_wrapper'))]
    count = max([value for value in counts if isinstance(value, int)], default=1)
    number = sum(
        isinstance(layer, SwitchNorm) and layer.training and 'bn' in layer.scopes
        for layer in model.modules()
    )
    if count > 1 and number:
        _warn(
            f'{_COUNTS}={count} adds up the gradients of {count} batches, but the bn of {number} '
            'SN layers takes its statistics from each batch alone. If a batch has too few images '
            "for that, enlarge it, or leave bn out: norm_cfg=dict(type='SN', scopes=('in', 'ln'))."
        )


def _warn(text: str) -> None:
    print_log(text, logger='current', level=logging.WARNING)


def _parts_with_norm_eval(model: nn.Module) -> dict[str, nn.Module]:
    """Return the outermost parts with ``norm_eval``, by name; SN layers have one of their own."""
    found: dict[str, nn.Module] = {}
    inner: set[nn.Module] = set()
    for name, part in model.named_modules():
        holds = getattr(part, 'norm_eval', False) and not isinstance(part, SwitchNorm)
        if holds and part not in inner:
            found[bare_name(name)] = part
            inner.update(part.modules())
    return found


def _updates(layer: nn.Module) -> bool:
    """Return whether a layer is SN and updates running statistics."""
    tracks = isinstance(layer, SwitchNorm) and layer.running_mean is not None
    return tracks and layer.training and layer.momentum != 0
