"""From the weights of a network with BatchNorm to those of the same network with SN."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from sn_openmmlab.checkpoints.names import few
from sn_openmmlab.checkpoints.norm_names import as_sn, batch_norms
from sn_openmmlab.checkpoints.plans.layout import Layout
from sn_openmmlab.checkpoints.plans.norm_shapes import AUTHORS_SCOPES, BATCH_NORM, Shape
from sn_openmmlab.checkpoints.plans.plan import Plan, make_plan
from sn_openmmlab.checkpoints.plans.resnet import (
    is_bn_resnet,
    resnet_depth,
    resnet_shapes,
    resnet_stages,
    resnet_title,
)
from sn_openmmlab.checkpoints.start_ratio import controls_at
from sn_openmmlab.checkpoints.weight_names import bare_names, joined
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.choice import CONTROLS
from sn_openmmlab.layers.convert.from_batch_norm import BATCH_RATIO

# Only for a ResNet is it known which weights a file must have.
BN_NETWORK = Layout('bn', from_batch_norm=True)
BN_RESNET = Layout('resnet-bn', from_batch_norm=True)


@dataclass(frozen=True)
class BatchNormPlan(Plan):
    """A conversion from BatchNorm to SN before it is carried out.

    Attributes:
        controls: Name in the model → values of the control parameters, which the file lacks.
        batch_ratio: The importance ratio of `'bn'` that these values give.
    """

    controls: Mapping[str, Sequence[float]]
    batch_ratio: float

    def under(self, prefix: str) -> 'BatchNormPlan':
        """Return the plan for a model that has this one as its part `prefix`."""
        controls = {prefix + name: values for name, values in self.controls.items()}
        return replace(super().under(prefix), controls=controls)

    def convert(self) -> dict[str, Tensor]:
        """Return the weights of the model; they share no memory with those of the file."""
        controls = {name: torch.tensor(values) for name, values in self.controls.items()}
        return {**super().convert(), **controls}


def plan_batch_norm(
    weights: Mapping[str, Tensor], batch_ratio: float = BATCH_RATIO
) -> BatchNormPlan:
    """Plan the conversion of a network with BatchNorm, by the names that the toolboxes give it.

    No model is needed: `bn1`, `bn` and the like become `sn1`, `sn`. Layers with other names keep
    them. Each SN layer mixes in, ln and bn. If the network lies under `backbone.`, all else is
    dropped. The classifier of a ResNet is dropped too.

    Args:
        weights: The weights by name.
        batch_ratio: The importance ratio at which `'bn'` starts, as in `convert_batch_norm`.

    Raises:
        UsageError: `batch_ratio` is outside (0, 1], the network has no BatchNorm, or a weight is
            there twice.
    """
    values = controls_at(batch_ratio, AUTHORS_SCOPES[3])
    sources = _backbone(weights)
    network = {name: weights[source] for name, source in sources.items()}
    norms = batch_norms(network)
    if not norms:
        raise UsageError(f'it holds no network with BatchNorm, but {few(weights)}.')
    layout, title, expected = BN_NETWORK, 'a network with BatchNorm', _own_shapes(network, norms)
    if is_bn_resnet(network):
        stages = resnet_stages(network)
        layout, title = BN_RESNET, f'{resnet_title(network, stages)} with BatchNorm'
        sources = {name: source for name, source in sources.items() if not _is_classifier(name)}
        expected = resnet_shapes(resnet_depth(network), BATCH_NORM, stages, like=network)
    expected |= {name: () for name in network if name.split('.')[-1] == 'num_batches_tracked'}
    renamed = {_renamed(name): shape for name, shape in expected.items()}
    targets = {source: _renamed(name) for name, source in sources.items()}
    plan = make_plan(layout, title, weights, targets, renamed)
    controls = {joined(as_sn(norm), part): values for norm in norms for part in CONTROLS}
    return BatchNormPlan(**vars(plan), controls=controls, batch_ratio=batch_ratio)


def _backbone(weights: Iterable[str]) -> dict[str, str]:
    """Return name in the network → name in the file."""
    names = bare_names(weights)
    inner = {
        name.removeprefix('backbone.'): source
        for name, source in names.items()
        if name.startswith('backbone.')
    }
    twice = [source for name, source in inner.items() if name in names]
    if twice:
        raise UsageError(
            f'it has {few(twice)} also without backbone.: save only one of the two networks.'
        )
    return inner or names


def _own_shapes(network: Mapping[str, Tensor], norms: Iterable[str]) -> dict[str, Shape]:
    """Return the shapes that the weights have; each norm gets all its parts, of equal length."""
    shapes = {name: tuple(weight.shape) for name, weight in network.items()}
    for norm in norms:
        channels = (network[joined(norm, 'running_mean')].numel(),)
        affine = any(joined(norm, part) in network for part in ('weight', 'bias'))
        for part in BATCH_NORM.parts if affine else ('running_mean', 'running_var'):
            shapes[joined(norm, part)] = channels
    return shapes


def _is_classifier(name: str) -> bool:
    return name.startswith('fc.')


def _renamed(name: str) -> str:
    layer, _, part = name.rpartition('.')
    return joined(as_sn(layer), part)
