"""Warnings of settings that act on BatchNorm but not on SN and BRN."""

import logging
from collections.abc import Sequence

from mmengine.config import Config
from mmengine.logging import print_log
from torch import nn

from sn_openmmlab.analysis.norms import bare_name
from sn_openmmlab.config_tree import walk
from sn_openmmlab.layers.batch_renorm import BatchRenorm
from sn_openmmlab.layers.switch_norm import SwitchNorm

_COUNTS = 'accumulative_counts'
# The names of the layers, and how one holds their running statistics.
_HOLD: dict[type[nn.Module], tuple[str, str]] = {
    SwitchNorm: ('SN', 'set norm_eval=True in the norm_cfg of SN'),
    BatchRenorm: ('BRN', 'name BN in the norm_cfg, which loads the same weights'),
}


def warn_of_norm_eval(model: nn.Module) -> None:
    """Warn about each part whose ``norm_eval`` does not fix the statistics of its layers.

    The toolboxes set only BatchNorm to evaluation mode.

    Args:
        model: in training mode.
    """
    for name, part in _parts_with_norm_eval(model).items():
        for kind in _HOLD:
            layers = [x for x in part.modules() if isinstance(x, kind) and _updates(x)]
            if layers:
                _warn_of_layers(name or 'the model', layers, *_HOLD[kind])


def warn_of_accumulation(model: nn.Module, config: Config) -> None:
    """Warn if gradients are accumulated while SN layers normalize by their batch.

    mmengine warns about BatchNorm only.

    Args:
        model: in training mode.
        config: of the run.
    """
    counts = [part.get(_COUNTS) for _, part in walk(config.get('optim_wrapper'))]
    count = max([value for value in counts if isinstance(value, int)], default=1)
    if count <= 1:
        return
    number = sum(
        isinstance(layer, SwitchNorm) and layer.training and 'bn' in layer.scopes
        for layer in model.modules()
    )
    if number:
        _warn(
            f'{_COUNTS}={count} adds up the gradients of {count} batches, but the bn of {number} '
            'SN layers takes its statistics from each batch alone. If a batch has too few images '
            "for that, enlarge it, or leave bn out: norm_cfg=dict(type='SN', scopes=('in', 'ln'))."
        )
    if number := sum(isinstance(x, BatchRenorm) and x.training for x in model.modules()):
        _warn(
            f'{_COUNTS}={count} adds up the gradients of {count} batches, but {number} BRN layers '
            'take their statistics from each batch alone and count each one in begin, r_end and '
            'd_end.'
        )


def warn_of_schedule(model: nn.Module, iterations: int) -> None:
    """Warn if BRN layers will never be more than BatchNorm, since the training ends before.

    Args:
        model: in training mode.
        iterations: how many the training still has.
    """
    layers = [x for x in model.modules() if isinstance(x, BatchRenorm) and x.training]
    ends = [x for x in layers if int(x.num_batches_tracked) + iterations <= x.begin]
    if ends:
        _warn(
            f'{len(ends)} BRN layers will be BatchNorm throughout: they do without a correction '
            f'for the first {ends[0].begin} batches, and the training ends after {iterations}. Set '
            'begin, r_end and d_end in the norm_cfg of BRN to fit the training.'
        )


def _warn_of_layers(place: str, layers: Sequence[nn.Module], norm: str, hold: str) -> None:
    trained = any(p.requires_grad for layer in layers for p in layer.parameters())
    sets = 'has norm_eval=True' if trained else 'freezes its norms and has norm_eval=True'
    unlike = '' if trained else 'They are NOT frozen as BatchNorm would be. '
    _warn(
        f'{place} {sets}, which acts on BatchNorm only: {len(layers)} {norm} layers in it keep '
        f'updating their running statistics. {unlike}To hold them, {hold}. To let them update, set '
        f'norm_eval=False in {place}.'
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
    """Return whether an SN or BRN layer updates running statistics."""
    return layer.running_mean is not None and layer.training and layer.momentum != 0
