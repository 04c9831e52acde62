"""The SN settings in the config that MMEngine stores in a checkpoint. The config is never run."""

import ast
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from sn_openmmlab.layers.names import LAYERS
from sn_openmmlab.layers.settings import MixSettings
from sn_openmmlab.layers.switch_norm import SwitchNorm

# A config names the layers as in the registry, or by their classes.
_TYPES = (*LAYERS, 'SwitchNorm', 'SyncSwitchNorm')
_DEFAULTS = {
    name: inspect.signature(SwitchNorm).parameters[name].default for name in MixSettings._fields
}


def configured_settings(checkpoint: Mapping[str, Any]) -> list[MixSettings]:
    """Return the settings of all SN layers in the model of the config, each only once.

    The list is empty if the checkpoint has no config, or one that cannot be read.
    """
    meta = checkpoint.get('meta')
    text = meta.get('cfg') if isinstance(meta, Mapping) else None
    if not isinstance(text, str):
        return []
    try:
        lines = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    # Other variables may be left over from a base config.
    models = [line.value for line in lines if isinstance(line, ast.Assign) and _names_model(line)]
    found = [_settings(items) for model in models for items in _switch_norms(model)]
    return list(dict.fromkeys(settings for settings in found if settings))


def _names_model(line: ast.Assign) -> bool:
    return any(isinstance(target, ast.Name) and target.id == 'model' for target in line.targets)


def _switch_norms(model: ast.expr) -> Iterator[dict[str, ast.expr]]:
    """Yield the items of each `dict(type='SN', …)` and `{'type': 'SN', …}`."""
    for node in ast.walk(model):
        items = {}
        if isinstance(node, ast.Call):
            items = {word.arg: word.value for word in node.keywords}
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            items = {key.value: value for key, value in pairs if isinstance(key, ast.Constant)}
        kind = items.get('type')
        name = kind.value if isinstance(kind, ast.Constant) else None
        if isinstance(name, str) and name.rpartition('.')[2] in _TYPES:
            yield items


def _settings(items: Mapping[str, ast.expr]) -> MixSettings | None:
    """Return the settings that the items give, or None if they are not literal."""
    try:
        given = {name: ast.literal_eval(items[name]) for name in _DEFAULTS if name in items}
        settings = MixSettings(**{**_DEFAULTS, **given})
        scopes = tuple(settings.scopes)
    except (ValueError, TypeError):
        return None
    groups = settings.num_groups if 'gn' in scopes else None
    return settings._replace(scopes=scopes, num_groups=groups)
