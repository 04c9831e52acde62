"""Weights of networks with BatchNorm, as those of the same networks with SN."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from sn_openmmlab.checkpoints.names import few, joined, shown
from sn_openmmlab.checkpoints.plans.bn_resnet import (
    VECTORS,
    bn_resnet_shapes,
    bn_resnet_stages,
    is_resnet,
    resnet_title,
)
from sn_openmmlab.checkpoints.plans.layouts import bare_names
from sn_openmmlab.checkpoints.plans.plan import Plan, make_plan
from sn_openmmlab.checkpoints.plans.resnet import SCOPES, Shape
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.convert.from_batch_norm import BATCH_RATIO, start_controls
from sn_openmmlab.layers.switch_norm import SwitchNorm

_PARTS = (*VECTORS, 'num_batches_tracked')
_CONTROLS = ('mean_weight', 'var_weight')
_SCOPES = SCOPES[3]

# Of any network, whose weights are as they are, and of a ResNet, whose weights are known.
BATCH_NORM_LAYOUTS = ('bn', 'resnet-bn')


@dataclass(frozen=True)
class BatchNormPlan(Plan):
    """A conversion to Switchable Normalization before it is done.

    Attributes:
        controls: by name in the model the control parameters, which nothing in the file becomes.
        batch_ratio: the importance ratio of ``'bn'`` that they give.
    """

    controls: Mapping[str, Sequence[float]]
    batch_ratio: float

    def under(self, prefix: str) -> 'BatchNormPlan':
        controls = {prefix + name: values for name, values in self.controls.items()}
        return replace(super().under(prefix), controls=controls)

    def convert(self) -> dict[str, Tensor]:
        controls = {name: torch.tensor(values) for name, values in self.controls.items()}
        return {**super().convert(), **controls}


def has_batch_norm(weights: Mapping[str, Tensor]) -> bool:
    """Whether weights are of a network with BatchNorm and without Switchable Normalization."""
    return bool(batch_norms(weights)) and not any(name.endswith(_CONTROLS) for name in weights)


def batch_norms(weights: Iterable[str]) -> list[str]:
    """Return the names of the layers that have running statistics and no λ."""
    names = set(weights)
    ends = [name for name in weights if name.split('.')[-1] == 'running_mean']
    norms = [name.removesuffix('running_mean').removesuffix('.') for name in ends]
    return [norm for norm in norms if not names & {joined(norm, part) for part in _CONTROLS}]


def batch_norm_of(name: str, layer: SwitchNorm, norms: Collection[str]) -> str | None:
    """Return which of the BatchNorms is in the place of an SN layer, or None.

    It has the layer's name or, as the toolboxes name layers after their norm (``bn1``, ``sn1``),
    that name with the other norm in it.
    """
    other = re.sub(rf'(^|\.){layer._abbr_}(?=[^.]*$)', r'\1bn', name)
    return next((found for found in (name, other) if found in norms), None)


def plan_batch_norm(
    weights: Mapping[str, Tensor], batch_ratio: float = BATCH_RATIO
) -> BatchNormPlan:
    """Return what becomes of a network with BatchNorm as the toolboxes name it.

    It needs no model: ``bn1``, ``bn`` and the like become ``sn1``, ``sn``; layers of other names
    keep them, as ``downsample.1``. Each mixes in, ln and bn. Of a network that lies under
    ``backbone.`` the rest is dropped, and of a ResNet its classifier.

    Args:
        weights: by name.
        batch_ratio: as of :func:`~sn_openmmlab.layers.from_batch_norm.convert_batch_norm`.

    Raises:
        UsageError: ``batch_ratio`` is outside (0, 1], there is no BatchNorm in the network, or
            there is a weight twice.
    """
    controls = _controls(_SCOPES, batch_ratio)
    sources = _backbone(weights)
    network = {name: weights[source] for name, source in sources.items()}
    norms = batch_norms(network)
    if not norms:
        raise UsageError(f'it holds no network with BatchNorm, but {few(weights)}.')
    (kind, resnet), title = BATCH_NORM_LAYOUTS, 'a network with BatchNorm'
    expected = _own_shapes(network, norms)
    if is_resnet(network):
        kind, title = resnet, f'{resnet_title(network, bn_resnet_stages(network))} with BatchNorm'
        sources = {name: source for name, source in sources.items() if not _is_classifier(name)}
        expected = bn_resnet_shapes(network) | _counters(network)
    renamed = {_renamed(name): shape for name, shape in expected.items()}
    targets = {source: _renamed(name) for name, source in sources.items()}
    plan = make_plan(kind, title, weights, targets, renamed, lambda _, shape: shape)
    names = [joined(_sn(norm), part) for norm in norms for part in _CONTROLS]
    controls = dict.fromkeys(names, controls)
    return BatchNormPlan(**vars(plan), controls=controls, batch_ratio=batch_ratio)


def fill_layers(
    layers: Mapping[str, SwitchNorm], weights: Mapping[str, Tensor], batch_ratio: float
) -> dict[str, Tensor]:
    """Return weights in which the BatchNorms of a model's SN layers became those.

    The BatchNorm of a layer is that of :func:`batch_norm_of`. Layers whose λ are among the weights
    already are passed over; all other weights stay as they are.

    Args:
        layers: the SN layers of the model by name.
        weights: by name; they are not copied.
        batch_ratio: as of :func:`~sn_openmmlab.layers.from_batch_norm.convert_batch_norm`, of the
            layers that train; frozen ones get 1.

    Raises:
        UsageError: ``batch_ratio`` is outside (0, 1]; layers have no BatchNorm among the weights,
            or do not mix ``'bn'``. The message names them, and does not name the file.
    """
    # A wrong ratio is one, also where every layer is frozen.
    _controls(_SCOPES, batch_ratio)
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
        # Frozen, it cannot adapt to a share of the others.
        controls = _controls(layer.scopes, batch_ratio if layer.mean_weight.requires_grad else 1)
        filled |= {joined(name, part): torch.tensor(controls) for part in _CONTROLS}
    if unmatched:
        raise UsageError(
            f'it holds neither SN nor BatchNorm for these SN layers: {few(unmatched)}.'
        )
    return filled


def _controls(scopes: Sequence[str], batch_ratio: float) -> list[float]:
    try:
        return start_controls(scopes, batch_ratio)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from error


def _check_batch(name: str, layer: SwitchNorm, norm: str) -> None:
    if 'bn' not in layer.scopes:
        raise UsageError(
            f'the SN layer {name} mixes {", ".join(layer.scopes)}, which cannot take over the '
            f"running statistics of {shown(norm)}: add 'bn' to the scopes of its norm_cfg, or "
            'start from weights of SN.'
        )


def _backbone(weights: Iterable[str]) -> dict[str, str]:
    """Name in the network → name in the file."""
    names = bare_names(weights)
    inner = {
        name.removeprefix('backbone.'): source
        for name, source in names.items()
        if name.startswith('backbone.')
    }
    twice = [source for name, source in inner.items() if name in names]
    if twice:
        raise UsageError(
            f'it has {few(twice)} also without backbone.: save one of the two networks alone.'
        )
    return inner or names


def _own_shapes(network: Mapping[str, Tensor], norms: Iterable[str]) -> dict[str, Shape]:
    """The shapes that all weights have, but for norms that miss parts or do not fit together."""
    shapes = {name: tuple(weight.shape) for name, weight in network.items()}
    for norm in norms:
        channels = (network[joined(norm, 'running_mean')].numel(),)
        affine = any(joined(norm, part) in network for part in ('weight', 'bias'))
        for part in VECTORS if affine else VECTORS[2:]:
            shapes[joined(norm, part)] = channels
    return shapes | _counters(network)


def _counters(network: Iterable[str]) -> dict[str, Shape]:
    return {name: () for name in network if name.split('.')[-1] == 'num_batches_tracked'}


def _is_classifier(name: str) -> bool:
    return name.startswith('fc.')


def _renamed(name: str) -> str:
    layer, _, part = name.rpartition('.')
    return joined(_sn(layer), part)


def _sn(norm: str) -> str:
    return re.sub(r'(^|\.)bn(\d*)$', r'\1sn\2', norm)
