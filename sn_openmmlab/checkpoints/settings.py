"""The settings that the SN layers of a checkpoint were trained with, as far as it says."""

import ast
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from sn_openmmlab.checkpoints.files.provenance import recorded, recorded_scopes
from sn_openmmlab.checkpoints.plans.batch_norm import BATCH_NORM_LAYOUTS
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.names import LAYERS
from sn_openmmlab.layers.settings import MixSettings, mismatch, recorded_settings, settings_of
from sn_openmmlab.layers.switch_norm import SwitchNorm

# What a config may call the layers: by their names in the registry, or by their classes.
_TYPES = (*LAYERS, 'SwitchNorm', 'SyncSwitchNorm')
_DEFAULTS = {
    name: inspect.signature(SwitchNorm).parameters[name].default for name in MixSettings._fields
}
# A converted file of the authors' has their correction, but does not say so.
_NOT_OF_AUTHORS = (*BATCH_NORM_LAYOUTS, 'toolbox', None)


class TrainedSettings:
    """The settings that a checkpoint was trained with, by layer where its layers recorded them.

    Else the config tells, which mmengine stores in the file, and of a converted file the note of
    the converter.

    Args:
        checkpoint: as it was read.
        weights: those of it that are to be loaded, by the names that they have in the model.

    Attributes:
        of_authors: whether the file was converted from one of the authors', whose correction it
            does not record.
    """

    def __init__(self, checkpoint: Mapping[str, Any], weights: Mapping[str, Tensor]) -> None:
        self._weights = weights
        self._by_layer = recorded_settings(weights)
        self._of_any = _from_config(checkpoint)
        scopes = recorded_scopes(checkpoint)
        if scopes and not self._of_any:
            self._of_any = [MixSettings(scopes, None, None)]
        self.of_authors = recorded(checkpoint, 'layout') not in _NOT_OF_AUTHORS

    def check(self, layers: Mapping[str, SwitchNorm]) -> None:
        """Raise UsageError where a layer mixes otherwise than its weights were trained.

        Args:
            layers: those that get λ from the file, by name.
        """
        for name, layer in layers.items():
            self._check(name, layer)

    def _check(self, name: str, layer: SwitchNorm) -> None:
        known = self._by_layer.get(name)
        candidates = [known] if known else self._of_any
        faults = [mismatch(name, trained, settings_of(layer)) for trained in candidates]
        if faults and all(faults):
            # The nearest says best what to change.
            same = [trained.scopes == layer.scopes for trained in candidates]
            raise UsageError(faults[same.index(True) if True in same else 0])
        control = self._weights.get(f'{name}.mean_weight')
        # The module may have renamed it.
        number = len(layer.scopes) if control is None else control.numel()
        if number != len(layer.scopes):
            raise UsageError(
                f'it mixes {number} scopes, but the SN layer {name} mixes '
                f'{", ".join(layer.scopes)}: set the scopes that it was trained with in its '
                'norm_cfg.'
            )


def advise_correction(layers: Mapping[str, SwitchNorm]) -> str | None:
    """Return what to say of layers that get weights of the authors, where it has to be said."""
    other = [name for name, layer in layers.items() if layer.correction == 0]
    if not other:
        return None
    return (
        f'The authors trained their weights with correction=1, but {len(other)} SN layers that get '
        f'them have correction=0, as {other[0]}: set correction=1 in their norm_cfg '
        '(docs/model_zoo.md says what it costs).'
    )


def _from_config(checkpoint: Mapping[str, Any]) -> list[MixSettings]:
    """The settings of all SN layers in the model of the config, which is read and never run."""
    meta = checkpoint.get('meta')
    text = meta.get('cfg') if isinstance(meta, Mapping) else None
    if not isinstance(text, str):
        return []
    try:
        lines = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    # Other variables may be left over from a base.
    models = [line.value for line in lines if isinstance(line, ast.Assign) and _names_model(line)]
    found = [_settings(items) for model in models for items in _switch_norms(model)]
    return list(dict.fromkeys(settings for settings in found if settings))


def _names_model(line: ast.Assign) -> bool:
    return any(isinstance(target, ast.Name) and target.id == 'model' for target in line.targets)


def _switch_norms(model: ast.expr) -> Iterator[dict[str, ast.expr]]:
    """The items of each ``dict(type='SN', …)`` and ``{'type': 'SN', …}``."""
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
    try:
        given = {name: ast.literal_eval(items[name]) for name in _DEFAULTS if name in items}
        settings = MixSettings(**{**_DEFAULTS, **given})
        scopes = tuple(settings.scopes)
    except (ValueError, TypeError):
        return None
    groups = settings.num_groups if 'gn' in scopes else None
    return settings._replace(scopes=scopes, num_groups=groups)
