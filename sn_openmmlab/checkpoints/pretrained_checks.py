"""Check that the weights that `SNPretrained` found belong to the module."""

import re
from collections.abc import Iterable, Mapping

from torch import Tensor, nn

from sn_openmmlab.checkpoints.names import few, few_misfits
from sn_openmmlab.checkpoints.plans.norm_shapes import Shape
from sn_openmmlab.checkpoints.usable import check_usable
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.names import NORMS


def check_weights(module: nn.Module, weights: Mapping[str, Tensor], strict: bool = True) -> None:
    """Raise UsageError unless the weights fill the module and belong to the same network.

    The weights may lack linear layers, and have another number of classes in the last layers. The
    message names the weights but not the file.

    Args:
        module: The module to fill.
        weights: Its weights by name.
        strict: Whether they must hold all its convolutions and norm layers. If not, one will do.
    """
    own, layers = module.state_dict(), dict(module.named_modules(remove_duplicate=False))
    _check_filled(own, layers, weights, strict)
    _check_others(own, layers, weights)
    check_usable({n: weights[n] for n, w in own.items() if n in weights and w.is_floating_point()})


def _check_filled(
    own: Mapping[str, Tensor],
    layers: Mapping[str, nn.Module],
    weights: Mapping[str, Tensor],
    strict: bool,
) -> None:
    """Raise UsageError if convolutions or norm layers would not be filled."""
    missing, misfits = [], {}
    for name, weight in own.items():
        layer, _, part = name.rpartition('.')
        if part == 'num_batches_tracked' or not _has_to_be_filled(layers.get(layer)):
            continue
        if name in weights:
            if weights[name].shape != weight.shape:
                misfits[name] = (tuple(weights[name].shape), tuple(weight.shape))
        # The offset branch of a deformable convolution is learned from its initial values.
        elif f'{layer.rpartition(".")[0]}.weight' not in own:
            missing.append(name)
    if missing and (strict or own.keys().isdisjoint(weights)):
        raise UsageError(f'it lacks {few(missing)}{_instead(weights, own)}.')
    if any(not _is_of_other_classes(name, *shapes, layers) for name, shapes in misfits.items()):
        raise UsageError(f'it has {few_misfits(misfits)}.')


def _has_to_be_filled(layer: nn.Module | None) -> bool:
    weight = getattr(layer, 'weight', None)
    return isinstance(layer, NORMS) or (isinstance(weight, Tensor) and weight.dim() > 2)


def _instead(weights: Iterable[str], own: Iterable[str]) -> str:
    others = [name for name in weights if name not in own]
    return f', and has {few(others)} in their place' if others else ''


def _is_of_other_classes(
    name: str, found: Shape, expected: Shape, layers: Mapping[str, nn.Module]
) -> bool:
    """Return whether a layer differs only in its output channels.

    If all misfits do so, these are last layers. Otherwise the layer that follows would differ too:
    a norm in its channels, or a convolution in its input channels.
    """
    layer, _, part = name.rpartition('.')
    is_norm = isinstance(layers[layer], NORMS)
    return not is_norm and (part == 'bias' or found[1:] == expected[1:])


def _check_others(
    own: Mapping[str, Tensor], layers: Mapping[str, nn.Module], weights: Iterable[str]
) -> None:
    """Raise UsageError if weights without a place in the module are those of another network."""
    others = [name for name in weights if name not in own]
    more = [name for name in others if _is_of_missing_block(name, layers)]
    if more:
        raise UsageError(f'it has blocks that the module lacks, such as {few(more)}.')
    affine = [name for name in others if _is_affine(name, layers)]
    if affine:
        raise UsageError(
            f'the norm layers of the module have no {few(affine)}: remove affine=False from their '
            'norm_cfg.'
        )


def _is_of_missing_block(name: str, layers: Mapping[str, nn.Module]) -> bool:
    """Return whether a weight lies in a stage of the module, but in a block that it lacks.

    The stages are those of ResNet and HRNet. Other sequences may end early on purpose, such as
    the sequence of all stages.
    """
    block = re.match(r'((?:.*\.)?(?:layer|stage)\d)\.\d+(?=\.)', name)
    return block is not None and block[1] in layers and block[0] not in layers


def _is_affine(name: str, layers: Mapping[str, nn.Module]) -> bool:
    """Return whether a weight is γ or β of a norm layer."""
    layer, _, part = name.rpartition('.')
    return isinstance(layers.get(layer), NORMS) and part in ('weight', 'bias')
