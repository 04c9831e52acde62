"""The importance ratios of the SN layers in a network."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from sn_openmmlab.layers.switch_norm import SwitchNorm


@dataclass(frozen=True)
class LayerRatios:
    """The ratios of one layer (Eq. 5): w in `mean` and w′ in `var`, in the order of `scopes`."""

    name: str
    scopes: tuple[str, ...]
    mean: tuple[float, ...]
    var: tuple[float, ...]


def importance_ratios(model: nn.Module) -> list[LayerRatios]:
    """Return the ratios of every SN layer, in the order of the modules.

    A layer with several groups of ratios gives one row for each group, named `layer (group 1)` and
    so on.
    """
    layers = {name: x for name, x in model.named_modules() if isinstance(x, SwitchNorm)}
    return [row for name, layer in layers.items() for row in _rows(name, layer)]


def _rows(name: str, layer: SwitchNorm) -> list[LayerRatios]:
    groups = layer.num_ratio_groups
    means, variances = (ratios.reshape(groups, -1).tolist() for ratios in layer.importance_ratios())
    return [
        LayerRatios(
            f'{name} (group {i})' if groups > 1 else name, layer.scopes, tuple(mean), tuple(var)
        )
        for i, (mean, var) in enumerate(zip(means, variances, strict=True), 1)
    ]


def write_ratios(rows: Iterable[LayerRatios], file: str | Path) -> None:
    """Write one CSV line per layer and scope: layer, scope, mean ratio, variance ratio."""
    with open(file, 'w', newline='') as stream:
        table = csv.writer(stream)
        table.writerow(['layer', 'scope', 'mean_ratio', 'var_ratio'])
        for row in rows:
            for scope, mean, var in zip(row.scopes, row.mean, row.var, strict=True):
                table.writerow([row.name, scope, f'{mean:.6f}', f'{var:.6f}'])
