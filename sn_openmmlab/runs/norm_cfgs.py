"""The check of each ``norm_cfg`` of a model, before the model is built."""

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any

from mmengine.config import Config
from mmengine.registry import MODELS
from torch import nn

from sn_openmmlab.config_tree import walk
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.names import LAYERS, RENORM_LAYERS
from sn_openmmlab.layers.switch_norm import SwitchNorm


def check_norm_cfgs(config: Config) -> None:
    """Raise UsageError if a ``norm_cfg`` of the model is wrong.

    It is wrong if it is a string, names no norm or an unknown one, or has an option or a value that
    SN or BRN does not take.
    """
    for part, settings in walk(config.model, 'model'):
        # WithNorm checks its own norm_cfg, which needs no type.
        norm_cfg = None if settings.get('type') == 'WithNorm' else settings.get('norm_cfg')
        place = f'{part}.norm_cfg'
        if isinstance(norm_cfg, str):
            raise UsageError(f'{place} is {norm_cfg!r}: write {place}=dict(type={norm_cfg!r}).')
        if isinstance(norm_cfg, Mapping) and norm_cfg:
            _check(place, norm_cfg, config.default_scope)


def _check(place: str, norm_cfg: Mapping[str, Any], scope: str) -> None:
    kind = norm_cfg.get('type')
    if kind is None:
        raise UsageError(f"{place} has no type: name the norm, as in {place}.type='SN'.")
    layer = {**LAYERS, **RENORM_LAYERS}.get(kind) if isinstance(kind, str) else kind
    if layer in LAYERS.values():
        _check_options(place, norm_cfg, 'SN', (SwitchNorm, layer))
    elif layer in RENORM_LAYERS.values():
        _check_options(place, norm_cfg, 'BRN', (layer,))
    elif isinstance(kind, str) and not _is_registered(kind, scope):
        raise UsageError(
            f'{place} names the norm {kind!r}, which is not registered: the names of SN are '
            f'{", ".join(LAYERS)}; your own norm needs its module in custom_imports.'
        )


def _check_options(
    place: str, norm_cfg: Mapping[str, Any], norm: str, kinds: Sequence[type[nn.Module]]
) -> None:
    """Raise UsageError unless the last of `kinds`, whose options all of them take, can be built."""
    found = (name for kind in kinds for name in inspect.signature(kind).parameters)
    taken = [n for n in dict.fromkeys(found) if n not in ('num_features', 'args', 'kwargs')]
    options = {key: value for key, value in norm_cfg.items() if key != 'type'}
    # The toolboxes remove it before they build the layer.
    frozen = options.pop('requires_grad', True)
    unknown = [name for name in options if name not in taken]
    if unknown:
        inner = ('device', 'dtype', 'process_group')
        known = ', '.join([*(n for n in taken if n not in inner), 'requires_grad'])
        raise UsageError(f'{place} has {", ".join(unknown)}, but {norm} takes only {known}.')
    if not isinstance(frozen, bool):
        raise UsageError(f'{place}.requires_grad must be True or False, not {frozen!r}.')
    groups = [options.get('num_groups', 32), options.get('num_ratio_groups', 1)]
    fits = all(isinstance(number, int) and number > 0 for number in groups)
    try:
        # The number of channels is not known yet; this one always fits the groups.
        kinds[-1](math.lcm(*groups) if fits else 1, **options)
    except (TypeError, ValueError) as error:
        raise UsageError(f'{place} does not fit {norm}: {error}') from error


def _is_registered(kind: str, scope: str) -> bool:
    with MODELS.switch_scope_and_registry(scope) as registry:
        return registry.get(kind) is not None
