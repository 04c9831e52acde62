"""The weights that a module gets from a checkpoint, by its own names, converted where needed."""

import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from mmengine.logging import print_log
from torch import Tensor, nn

from sn_openmmlab.checkpoints.batch_norm_layers import fill_layers
from sn_openmmlab.checkpoints.files.weights import find_weights
from sn_openmmlab.checkpoints.names import few
from sn_openmmlab.checkpoints.norm_names import renamed_norms
from sn_openmmlab.checkpoints.plans.layouts import to_toolbox
from sn_openmmlab.checkpoints.plans.norm_shapes import AUTHORS_SCOPES
from sn_openmmlab.checkpoints.settings import TrainedSettings, advise_correction
from sn_openmmlab.checkpoints.weight_names import bare, bare_names
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.convert.ratio_groups import split_ratio_weights
from sn_openmmlab.layers.settings import MixSettings, mismatch, settings_of
from sn_openmmlab.layers.switch_norm import SwitchNorm


def weights_for(
    module: nn.Module,
    checkpoint: Mapping[str, Any],
    prefix: str | None,
    batch_ratio: float,
    strict: bool = True,
) -> dict[str, Tensor]:
    """Return the weights of a checkpoint by the names that they have in a module.

    Args:
        module: The module to fill.
        checkpoint: The checkpoint as it was read.
        prefix: What the names of the part to load start with; None to find it out.
        batch_ratio: The importance ratio at which `'bn'` starts if the file has BatchNorm.
        strict: Whether it must have SN or BatchNorm for each SN layer.

    Raises:
        UsageError: The checkpoint has no such part, its layout is not known, its SN was trained
            with other settings, or see `fill_layers`.
    """
    weights = _part(find_weights(checkpoint), module, prefix)
    layers = {name: m for name, m in module.named_modules() if isinstance(m, SwitchNorm)}
    if not layers:
        return weights
    weights = renamed_norms(weights, layers)
    trained = TrainedSettings(checkpoint, weights)
    has_switch_norm = any(name.endswith('.mean_weight') for name in weights)
    of_authors = has_switch_norm and not _are_own(weights, layers)
    if of_authors:
        weights = renamed_norms(_within(to_toolbox(weights), module), layers)
    learned = {name: m for name, m in layers.items() if f'{name}.mean_weight' in weights}
    if of_authors:
        _check_scopes_of_authors(learned, weights)
    else:
        trained.check(learned)
    if (of_authors or trained.of_authors) and (warning := advise_correction(learned)):
        print_log(warning, logger='current', level=logging.WARNING)
    return fill_layers(layers, _split_ratios(weights, module, learned), batch_ratio, strict)


def _part(
    weights: Mapping[str, Tensor], module: nn.Module, prefix: str | None
) -> OrderedDict[str, Tensor]:
    """Return the weights of a part, and what its layers recorded, by the names in that part."""
    records = {bare(name): record for name, record in weights._metadata.items()}
    weights = {name: weights[source] for name, source in bare_names(weights).items()}
    prefix = _found_prefix(weights, module) if prefix is None else bare(prefix)
    if prefix and not prefix.endswith('.'):
        prefix += '.'
    part, records = (
        {name.removeprefix(prefix): item for name, item in items.items() if name.startswith(prefix)}
        for items in (weights, records)
    )
    if not part:
        raise UsageError(
            f'none of its weights starts with {prefix}: their names are {few(weights)}.'
        )
    part = OrderedDict(part)
    part._metadata = records
    return part


def _within(weights: dict[str, Tensor], module: nn.Module) -> dict[str, Tensor]:
    """Return the weights of the backbone if the module is one and they are of a whole detector."""
    prefix = _found_prefix(weights, module)
    return {
        name.removeprefix(prefix): weight
        for name, weight in weights.items()
        if name.startswith(prefix)
    }


def _found_prefix(weights: Mapping[str, Tensor], module: nn.Module) -> str:
    names = module.state_dict().keys()
    nested = {name.removeprefix('backbone.') for name in weights.keys() - names} & names
    twice = sorted(nested & weights.keys())
    if twice:
        raise UsageError(
            f"it has {few(twice)} with and without backbone.: choose by prefix='backbone.' or "
            "prefix=''."
        )
    return 'backbone.' if nested and names.isdisjoint(weights) else ''


def _are_own(weights: Mapping[str, Tensor], layers: Iterable[str]) -> bool:
    """Return whether the weights have the names and the shapes of the layers.

    The authors' weights have more dimensions.
    """
    return any(f'{name}.mean_weight' in weights for name in layers) and not any(
        weights[f'{name}.weight'].dim() > 1 for name in layers if f'{name}.weight' in weights
    )


def _split_ratios(
    weights: Mapping[str, Tensor], module: nn.Module, layers: Mapping[str, SwitchNorm]
) -> Mapping[str, Tensor]:
    """Repeat λ for layers with more groups of ratios than the file has, and say so."""
    split = [
        name
        for name, x in layers.items()
        if weights[f'{name}.mean_weight'].shape != x.mean_weight.shape
    ]
    if not split:
        return weights
    try:
        weights = split_ratio_weights(weights, module)
    except ValueError as error:
        raise UsageError(f'{error}') from error
    print_log(
        'The importance ratios in the file are repeated for the groups of channels that have their '
        f'own in this model (num_ratio_groups): {few(split)}.',
        logger='current',
    )
    return weights


def _check_scopes_of_authors(
    layers: Mapping[str, SwitchNorm], weights: Mapping[str, Tensor]
) -> None:
    for name, layer in layers.items():
        number = weights[f'{name}.mean_weight'].numel()
        if fault := mismatch(
            name, MixSettings(AUTHORS_SCOPES[number], None, None), settings_of(layer)
        ):
            raise UsageError(fault)
