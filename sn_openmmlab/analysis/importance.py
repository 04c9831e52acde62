"""The importance ratios of the SN layers in a network."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from sn_openmmlab.analysis.norms import bare_name, part_of, stage_of
from sn_openmmlab.analysis.places import UNKNOWN, Place, Shape, find_places
from sn_openmmlab.layers.switch_norm import SwitchNorm

# By part of the model, by 'mean' (w) or 'var' (w′), and by scope.
Ratios = dict[str, dict[str, dict[str, float]]]


@dataclass(frozen=True)
class LayerRatios:
    """The ratios of one layer (Eq. 5): w in `mean` and w′ in `var`, in the order of `scopes`.

    Attributes:
        name: the path of the layer in the model, without wrappers; for a layer with groups of
            ratios followed by the group, as `layer (group 1)`.
        scopes: whose statistics the layer mixes.
        mean: w, one ratio per scope.
        var: w′, one ratio per scope.
        place: where the layer lies in the network.
        num_ratio_groups: how many such rows its layer has.
    """

    name: str
    scopes: tuple[str, ...]
    mean: tuple[float, ...]
    var: tuple[float, ...]
    place: Place = UNKNOWN
    num_ratio_groups: int = 1

    @property
    def part(self) -> str:
        """The part of the model that the layer is in, as `'backbone'` or `'bbox_head'`."""
        return part_of(self._path)

    @property
    def stage(self) -> str:
        """What holds the layer within its part, as `'layer1'` of a backbone."""
        return stage_of(self._path)

    @property
    def _path(self) -> str:
        return self.name.partition(' (group ')[0]


def importance_ratios(model: nn.Module) -> list[LayerRatios]:
    """Return the ratios of every SN layer, in the order of the modules.

    A sparse layer has the ratios 1 and 0. A layer with several groups of ratios gives one row for
    each group.

    Args:
        model: any model, wrapped for distributed training or not.
    """
    modules = {bare_name(name): x for name, x in model.named_modules(remove_duplicate=False)}
    strides = {name: _stride(module) for name, module in modules.items()}
    places = find_places(_shapes(model), strides)
    return [
        row
        for name, layer in model.named_modules()
        if isinstance(layer, SwitchNorm)
        for row in ratio_rows(
            bare_name(name), layer.scopes, *layer.importance_ratios(), places.get(bare_name(name))
        )
    ]


def ratio_rows(
    name: str, scopes: Sequence[str], means: Tensor, variances: Tensor, place: Place | None
) -> list[LayerRatios]:
    """Return the row of a layer, or its rows if it has groups of ratios.

    Args:
        name: of the layer.
        scopes: in the order of the ratios.
        means: w, (number of scopes,) or (G, number of scopes).
        variances: w′, in the same shape.
        place: of the layer, if it is known.
    """
    pairs = [ratios.reshape(-1, len(scopes)).tolist() for ratios in (means, variances)]
    groups = len(pairs[0])
    return [
        LayerRatios(
            f'{name} (group {i})' if groups > 1 else name,
            tuple(scopes),
            tuple(mean),
            tuple(var),
            place or UNKNOWN,
            groups,
        )
        for i, (mean, var) in enumerate(zip(*pairs, strict=True), 1)
    ]


def mean_ratios(
    layers: Sequence[LayerRatios], group: Callable[[LayerRatios], str] = lambda layer: layer.part
) -> Ratios:
    """Average the ratios over the layers of each part of a model, and over all (Fig. 1a and 4).

    A layer that does not mix a scope counts with the ratio 0, so that the averages sum to 1.

    Args:
        layers: the ratios.
        group: gives the part of a layer.

    Returns:
        The averages by part, and those over all layers as `'all'`; nothing for no layers.
    """
    parts: dict[str, list[LayerRatios]] = {}
    for layer in layers:
        parts.setdefault(group(layer), []).append(layer)
    if parts:
        parts['all'] = list(layers)
    return {part: _average(rows) for part, rows in parts.items()}


def ratios_by_part(layers: Sequence[LayerRatios]) -> Ratios:
    """Average the ratios over parts; a network of one part is divided by the stages of that part.

    Args:
        layers: the ratios.
    """
    parts = {layer.part for layer in layers}
    return mean_ratios(layers, lambda layer: layer.part if len(parts) > 1 else layer.stage)


def _average(layers: Sequence[LayerRatios]) -> dict[str, dict[str, float]]:
    scopes = dict.fromkeys(scope for layer in layers for scope in layer.scopes)
    # The groups of a layer together count as one layer.
    total = sum(1 / layer.num_ratio_groups for layer in layers)
    averages: dict[str, dict[str, float]] = {}
    for kind in ('mean', 'var'):
        sums = dict.fromkeys(scopes, 0.0)
        for layer in layers:
            for scope, ratio in zip(layer.scopes, getattr(layer, kind), strict=True):
                sums[scope] += ratio / layer.num_ratio_groups
        averages[kind] = {scope: value / total for scope, value in sums.items()}
    return averages


def _shapes(model: nn.Module) -> dict[str, Shape]:
    """Return the shapes by the names of `state_dict()`, which a sharded model could not give."""
    return {
        bare_name(f'{name}.{part}' if name else part): tuple(tensor.shape)
        for name, module in model.named_modules(remove_duplicate=False)
        for part, tensor in (*module._parameters.items(), *module._buffers.items())
        if tensor is not None
    }


def _stride(module: nn.Module) -> int | None:
    stride = getattr(module, 'stride', None)
    stride = max(stride, default=None) if isinstance(stride, tuple) else stride
    return stride if isinstance(stride, int) else None
