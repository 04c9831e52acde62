"""The settings that give the control parameters their meaning, kept beside them in a state dict.

They are stored in the state dict's metadata, where torch keeps the version of each module. So a
state dict has no new keys, and older checkpoints and programs work as before.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol


class MixSettings(NamedTuple):
    """The settings with which λ, λ′ and γ were trained; others would give another network.

    Attributes:
        scopes: in the order of λ.
        correction: of the instance variance; None where a checkpoint does not tell it.
        num_groups: None where `'gn'` is not mixed, or where a checkpoint does not tell it.
    """

    scopes: tuple[str, ...]
    correction: int | None
    num_groups: int | None


class Mixes(Protocol):
    """A layer that mixes the statistics of scopes."""

    scopes: tuple[str, ...]
    correction: int
    num_groups: int


def settings_of(layer: Mixes) -> MixSettings:
    """Return the settings of a layer."""
    groups = layer.num_groups if 'gn' in layer.scopes else None
    return MixSettings(layer.scopes, layer.correction, groups)


def record_settings(settings: MixSettings, state_dict: Mapping[str, Any], prefix: str) -> None:
    """Write the settings of the layer whose weights start with `prefix` into the metadata.

    A state dict without metadata, such as a plain dict, stays as it is.
    """
    metadata = getattr(state_dict, '_metadata', None)
    if metadata is None:
        return
    # Plain types, which torch.load(weights_only=True) accepts.
    record: dict[str, Any] = {'scopes': list(map(str, settings.scopes))}
    for field in ('correction', 'num_groups'):
        if (value := getattr(settings, field)) is not None:
            record[field] = int(value)
    metadata.setdefault(prefix[:-1], {}).update(record)


def recorded_settings(state_dict: Mapping[str, Any]) -> dict[str, MixSettings]:
    """Return the recorded settings by layer, named as its weights are in the file.

    The result is empty for weights saved by others or by older versions, and for state dicts that
    were copied without their metadata.
    """
    metadata = getattr(state_dict, '_metadata', None)
    if not isinstance(metadata, Mapping):
        return {}
    found = {name: read_settings(record) for name, record in metadata.items()}
    return {name: settings for name, settings in found.items() if settings is not None}


def read_settings(record: Any) -> MixSettings | None:
    """Return the settings in one module's metadata, or None where it has none."""
    if not isinstance(record, Mapping):
        return None
    scopes, correction = record.get('scopes'), record.get('correction')
    groups = record.get('num_groups')
    if not (isinstance(scopes, list | tuple) and all(isinstance(scope, str) for scope in scopes)):
        return None
    if not (isinstance(correction, int) and isinstance(groups, int | None)):
        return None
    return MixSettings(tuple(scopes), correction, groups)


def mismatch(name: str, trained: MixSettings, built: MixSettings) -> str | None:
    """Return one sentence on which settings differ and what to set, or None where they agree.

    Args:
        name: the layer's name in the message; '' for a layer by itself.
        trained: the settings that the checkpoint records.
        built: the settings of the layer that would load it.
    """
    fields = [
        field
        for field, value in trained._asdict().items()
        if value is not None and value != getattr(built, field)
    ]
    if not fields:
        return None
    theirs, ours = (_shown(settings, fields) for settings in (trained, built))
    return (
        f'{layer_name(name)} was trained with {theirs}, but is built with {ours}: set {theirs} in '
        'its norm_cfg.'
    )


def layer_name(name: str) -> str:
    """Return what a message calls the layer of that name."""
    return f'the SN layer {name}' if name else 'the SN layer'


def _shown(settings: MixSettings, fields: list[str]) -> str:
    values = {field: getattr(settings, field) for field in fields}
    return ', '.join(f'{field}={value!r}' for field, value in values.items() if value is not None)
