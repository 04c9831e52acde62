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
    """Return the ratios of every SN layer, in the order of the modules."""
    rows = []
    for name, module in model.named_modules():
        if isinstance(module, SwitchNorm):
            mean, var = (tuple(ratios.tolist()) for ratios in module.importance_ratios())
            rows.append(LayerRatios(name, module.scopes, mean, var))
    return rows


def write_ratios(rows: Iterable[LayerRatios], file: str | Path) -> None:
    """Write one CSV line per layer and scope: layer, scope, mean ratio, variance ratio."""
    with open(file, 'w', newline='') as stream:
        table = csv.writer(stream)
        table.writerow(['layer', 'scope', 'mean_ratio', 'var_ratio'])
        for row in rows:
            for scope, mean, var in zip(row.scopes, row.mean, row.var, strict=True):
                table.writerow([row.name, scope, f'{mean:.6f}', f'{var:.6f}'])
