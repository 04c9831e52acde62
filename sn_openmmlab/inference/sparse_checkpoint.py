"""A checkpoint whose SN layers are sparse."""

import copy
import os
from typing import Any

from torch import nn

from sn_openmmlab import __version__
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.choice import CHOICES
from sn_openmmlab.layers.sparse import sparsify
from sn_openmmlab.layers.switch_norm import SwitchNorm

# The weights, and their average by EMAHook.
_STATES = {'state_dict': '', 'ema_state_dict': 'module.'}


def make_sparse(model: nn.Module, source: str | os.PathLike) -> None:
    """Make a trained model sparse; see `sn_openmmlab.sparsify`.

    Raises:
        UsageError: it has no SN, or λ is not finite. The message names the checkpoint `source`.
    """
    try:
        sparsify(model)
    except ValueError as error:
        raise UsageError(f'{source} cannot be made sparse: {error}') from error


def is_sparse(model: nn.Module) -> bool:
    """Return whether a model has SN layers and all of them are sparse."""
    layers = [layer for layer in model.modules() if isinstance(layer, SwitchNorm)]
    return bool(layers) and all(layer.is_sparse for layer in layers)


def with_choices(
    checkpoint: dict[str, Any], model: nn.Module, source: str | os.PathLike
) -> dict[str, Any]:
    """Return a checkpoint with the choices of a sparse model, in the average of `EMAHook` too.

    All else stays, such as the optimizer and the epoch, so that a training can be resumed: λ keeps
    its value and its momentum, and neither has an effect. Bare weights come to lie under
    `state_dict`.

    Args:
        checkpoint: as it was read, which stays as it is.
        model: that was loaded from it, and is sparse.
        source: the file of the checkpoint, which `meta` names.

    Raises:
        UsageError: the weights have other names than in the model.
    """
    whole = dict(checkpoint) if 'state_dict' in checkpoint else {'state_dict': checkpoint}
    for key, prefix in _STATES.items():
        if key in whole:
            # With torch's _metadata, which a dict's own copy would lose.
            whole[key] = copy.copy(whole[key])
            _add_choices(whole[key], prefix, model)
    meta = whole.get('meta')
    note = dict(source=os.path.basename(source), tool=f'sn_openmmlab {__version__}')
    whole['meta'] = {**(meta if isinstance(meta, dict) else {}), 'sparsify': note}
    return whole


def _add_choices(state: dict[str, Any], prefix: str, model: nn.Module) -> None:
    for name, layer in model.named_modules():
        if not isinstance(layer, SwitchNorm):
            continue
        starts = [f'{prefix}{name}', f'module.{name}', name]
        found = next((start for start in starts if f'{start}.mean_weight' in state), None)
        if found is None:
            raise UsageError(
                f'the checkpoint holds no {name}.mean_weight, beside which the choice would be '
                'written: load it into the model and save it anew.'
            )
        for choice in CHOICES:
            state[f'{found}.{choice}'] = getattr(layer, choice).clone()
