"""Norm layers by the names of their weights: which are BatchNorm, and which SN takes their place.

The toolboxes name a layer after its norm: `bn1` becomes `sn1`. Layers of other names, such as
`downsample.1`, keep them.
"""

import re
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping

from torch import Tensor

from sn_openmmlab.checkpoints.weight_names import joined
from sn_openmmlab.layers.choice import CONTROLS
from sn_openmmlab.layers.switch_norm import SwitchNorm


def has_batch_norm(weights: Collection[str]) -> bool:
    """Return whether a network has BatchNorm and no SN."""
    return bool(batch_norms(weights)) and not any(name.endswith(CONTROLS) for name in weights)


def batch_norms(weights: Iterable[str]) -> list[str]:
    """Return the names of the layers that have running statistics and no λ."""
    names = list(weights)
    known = set(names)
    ends = [name for name in names if name.split('.')[-1] == 'running_mean']
    norms = [name.removesuffix('running_mean').removesuffix('.') for name in ends]
    return [norm for norm in norms if not known & {joined(norm, part) for part in CONTROLS}]


def batch_norm_of(name: str, layer: SwitchNorm, norms: Collection[str]) -> str | None:
    """Return which of the BatchNorm layers `norms` the SN layer `name` replaces, or None.

    The BatchNorm has the same name, or that name with `bn` for `sn`.
    """
    other = re.sub(rf'(^|\.){layer._abbr_}(?=[^.]*$)', r'\1bn', name)
    return next((found for found in (name, other) if found in norms), None)


def renamed_norms(weights: Mapping[str, Tensor], layers: Iterable[str]) -> dict[str, Tensor]:
    """Return the weights with SN layers renamed as the layers of a model are called.

    SN that was built by a `norm_cfg` is called `sn1`. SN that took the place of another norm in a
    built model is called as that one was, `bn1` or `gn1`.

    Args:
        weights: The weights by name; their metadata are renamed too.
        layers: The names of the SN layers of the model.
    """
    found = {name.removesuffix('.mean_weight') for name in weights if name.endswith('.mean_weight')}
    theirs = {as_sn(name, 'bn|gn'): name for name in found}
    renames = {
        theirs[as_sn(name, 'bn|gn')]: name
        for name in layers
        if name not in found and as_sn(name, 'bn|gn') in theirs
    }

    out = OrderedDict((_renamed(name, renames), value) for name, value in weights.items())
    records = getattr(weights, '_metadata', None)
    if records is not None:
        out._metadata = {renames.get(name, name): record for name, record in records.items()}
    return out


def _renamed(name: str, renames: Mapping[str, str]) -> str:
    layer, _, part = name.rpartition('.')
    return joined(renames[layer], part) if layer in renames else name


def as_sn(layer: str, norms: str = 'bn') -> str:
    """Return the name that the toolboxes would give a norm layer if it were SN.

    Args:
        layer: The name of the layer.
        norms: The abbreviations to replace, separated by `|`.
    """
    return re.sub(rf'(^|\.)(?:{norms})(\d*)$', r'\1sn\2', layer)
