"""The SN layers of a model take over the BatchNorm layers among the weights of a file."""

from collections.abc import Mapping

import torch
from mmengine.logging import print_log
from torch import Tensor

from sn_openmmlab.checkpoints.names import few, shown
from sn_openmmlab.checkpoints.norm_names import batch_norm_of, batch_norms
from sn_openmmlab.checkpoints.plans.norm_shapes import AUTHORS_SCOPES, BATCH_NORM
from sn_openmmlab.checkpoints.start_ratio import controls_at
from sn_openmmlab.checkpoints.weight_names import joined
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.choice import CONTROLS
from sn_openmmlab.layers.switch_norm import SwitchNorm

_PARTS = (*BATCH_NORM.parts, 'num_batches_tracked')


def fill_layers(
    layers: Mapping[str, SwitchNorm],
    weights: Mapping[str, Tensor],
    batch_ratio: float,
    strict: bool = True,
) -> dict[str, Tensor]:
    """Return the weights with the BatchNorm of each SN layer turned into that layer's own.

    Layers whose λ are already among the weights are passed over. All other weights stay.

    Args:
        layers: The SN layers of the model by name.
        weights: The weights by name; they are not copied.
        batch_ratio: The importance ratio at which `'bn'` starts in layers that train, as in
            `convert_batch_norm`. Frozen layers get 1.
        strict: Whether each layer must have a BatchNorm among the weights. One that has none keeps
            its λ, and has to be among the weights under its own name to get γ and β.

    Raises:
        UsageError: `batch_ratio` is outside (0, 1], a layer has no BatchNorm among the weights
            although it must, or it does not mix `'bn'`. The message names the layers, not the file.
    """
    # Refuse a wrong ratio even if every layer is frozen.
    controls_at(batch_ratio, AUTHORS_SCOPES[3])
    norms = set(batch_norms(weights))
    filled, unmatched = dict(weights), []
    for name, layer in layers.items():
        if joined(name, 'mean_weight') in weights:
            continue
        norm = batch_norm_of(name, layer, norms)
        if norm is None:
            unmatched.append(name)
            continue
        _check_batch(name, layer, norm)
        for part in _PARTS:
            if (old := joined(norm, part)) in filled:
                filled[joined(name, part)] = filled.pop(old)
        # A frozen layer could not adapt to a share of the other scopes.
        controls = controls_at(batch_ratio if layer.mean_weight.requires_grad else 1, layer.scopes)
        # Groups of channels with ratios of their own all start with the same.
        control = torch.tensor(controls).expand(layer.mean_weight.shape)
        filled |= {joined(name, part): control.clone() for part in CONTROLS}
    if unmatched and strict:
        raise UsageError(
            f'it holds neither SN nor BatchNorm for these SN layers: {few(unmatched)}.'
        )
    if unmatched:
        print_log(
            'SN layers start with equal importance ratios, since the file holds neither SN nor '
            f'BatchNorm for them: {few(unmatched)}.',
            logger='current',
        )
    return filled


def _check_batch(name: str, layer: SwitchNorm, norm: str) -> None:
    if 'bn' not in layer.scopes:
        raise UsageError(
            f'the SN layer {name} mixes {", ".join(layer.scopes)}, which cannot take over the '
            f"running statistics of {shown(norm)}: add 'bn' to the scopes of its norm_cfg, or "
            'start from weights of SN.'
        )
