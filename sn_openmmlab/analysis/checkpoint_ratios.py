"""The importance ratios in a checkpoint file, read without its config and without a toolbox."""

import os
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sn_openmmlab.analysis.importance import LayerRatios, ratio_rows
from sn_openmmlab.analysis.norms import bare_name
from sn_openmmlab.analysis.places import find_places
from sn_openmmlab.checkpoints.files.safe_loading import read_checkpoint
from sn_openmmlab.checkpoints.files.weights import find_weights
from sn_openmmlab.checkpoints.names import about, shown
from sn_openmmlab.checkpoints.settings import TrainedSettings
from sn_openmmlab.checkpoints.weight_names import bare_names, joined
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.choice import CHOICES, CONTROLS, check_scope_choice, chosen_control
from sn_openmmlab.scopes import SCOPES


def read_ratios(file: str | os.PathLike) -> list[LayerRatios]:
    """Return the ratios of every SN layer in a checkpoint file, in the order of its weights.

    The config in the file is never run. The scopes are those that each layer recorded, or else
    those that the text of the config, the note of our converter or the authors' order tell.

    Raises:
        UsageError: the file is no checkpoint; it has no SN; or its ratios are damaged, not finite,
            or of scopes that nothing tells.
    """
    checkpoint = read_checkpoint(file)
    with about(file):
        return checkpoint_ratios(checkpoint)


def checkpoint_ratios(checkpoint: Mapping[str, Any]) -> list[LayerRatios]:
    """Return the ratios in a checkpoint as `read_checkpoint` gives it; see `read_ratios`."""
    weights = find_weights(checkpoint)
    # The names in the file by the bare ones.
    names = bare_names(weights)
    places = find_places({name: tuple(weights[full].shape) for name, full in names.items()})
    if not places:
        raise UsageError(
            'it has no SN layer, since no weight is called mean_weight: name the checkpoint of a '
            'network with SN.'
        )
    settings = TrainedSettings(checkpoint, weights)
    rows: list[LayerRatios] = []
    for layer, place in places.items():
        found = {part: weights.get(names.get(joined(layer, part))) for part in CONTROLS + CHOICES}
        full = names[joined(layer, CONTROLS[0])].removesuffix(CONTROLS[0]).removesuffix('.')
        _check_controls(layer, found)
        scopes = settings.scopes_of(full, found[CONTROLS[0]].shape[-1])
        _check_scopes(layer, scopes)
        rows += ratio_rows(bare_name(layer), scopes, *_ratios(layer, found, scopes), place)
    return rows


def _check_controls(layer: str, found: Mapping[str, Tensor | None]) -> None:
    mean, var = (found[name] for name in CONTROLS)
    if var is None or mean.shape != var.shape or mean.dim() not in (1, 2) or not mean.numel():
        raise UsageError(
            f'{_of(layer)} are damaged: its mean_weight and var_weight must have the same shape, '
            '(scopes,) or (groups, scopes).'
        )
    if not (_holds_fractions(mean) and _holds_fractions(var)):
        raise UsageError(
            f'{_of(layer)} are damaged: its mean_weight and var_weight must be dense tensors of '
            'floating-point numbers.'
        )
    sparse = found[CHOICES[0]] is not None
    if not sparse and not (mean.float().isfinite().all() and var.float().isfinite().all()):
        raise UsageError(
            f'{_of(layer)} are not finite: the training went wrong before it was saved, so name an '
            'earlier checkpoint.'
        )


def _holds_fractions(x: Tensor) -> bool:
    return x.is_floating_point() and x.layout == torch.strided and not x.is_meta


def _check_scopes(layer: str, scopes: tuple[str, ...] | None) -> None:
    if scopes is None:
        raise UsageError(
            f'nothing in it tells which scopes {_of(layer)} belong to: load it into its model and '
            'save model.state_dict() with torch.save, which records them.'
        )
    if unknown := set(scopes) - set(SCOPES):
        raise UsageError(f'{_of(layer)} belong to {min(unknown)}, which is none of {list(SCOPES)}.')


def _ratios(
    layer: str, found: Mapping[str, Tensor | None], scopes: tuple[str, ...]
) -> tuple[Tensor, Tensor]:
    """Return w and w′ (Eq. 5); 1 and 0 for a sparse layer."""
    controls = [found[name].float() for name in CONTROLS]
    groups = len(controls[0]) if controls[0].dim() == 2 else 1
    for i, name in enumerate(CHOICES):
        choice = found[name]
        if choice is None:
            continue
        try:
            check_scope_choice(name, choice, groups, scopes)
        except ValueError as error:
            raise UsageError(f'{_of(layer)} are damaged: {error}') from error
        controls[i] = chosen_control(controls[i], choice)
    return torch.softmax(controls[0], -1), torch.softmax(controls[1], -1)


def _of(layer: str) -> str:
    return f'the ratios of {shown(layer) or "the layer"}'
