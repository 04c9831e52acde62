"""What the control parameters of a layer mean, kept beside them in the state dict.

It lies in the state dict's metadata, where torch keeps the version of each module, so that no key
is new and older checkpoints and programs are as before.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from sn_openmmlab.layers.switch_norm import SwitchNorm


class MixSettings(NamedTuple):
    """The settings with which λ, λ′ and γ were trained; with others they give another network.

    ``scopes`` are in the order of λ. ``num_groups`` is None where ``'gn'`` is not among them. Of a
    checkpoint, None is what it does not tell.
    """

    scopes: tuple[str, ...]
    correction: int | None
    num_groups: int | None


def settings_of(layer: 'SwitchNorm') -> MixSettings:
    """Return the settings of a layer."""
    groups = layer.num_groups if 'gn' in layer.scopes else None
    return MixSettings(layer.scopes, layer.correction, groups)


def record_settings(settings: MixSettings, state_dict: Mapping[str, Any], prefix: str) -> None:
    """Write the settings of the layer whose weights start with ``prefix`` into the metadata.

    A state dict without metadata, as a plain dict, stays without.
    """
    metadata = getattr(state_dict, '_metadata', None)
    if metadata is None:
        return
    # Plain types, which torch's safe reader takes.
    record = {'scopes': list(map(str, settings.scopes)), 'correction': int(settings.correction)}
    if settings.num_groups is not None:
        record['num_groups'] = int(settings.num_groups)
    metadata.setdefault(prefix[:-1], {}).update(record)


def recorded_settings(state_dict: Mapping[str, Any]) -> dict[str, MixSettings]:
    """Return the recorded settings by the name of the layer, as its weights have it in the file.

    Empty where nothing is recorded: in weights that were saved by others or by older versions, and
    in state dicts that were copied without their metadata.
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
    named = isinstance(scopes, list | tuple) and all(isinstance(scope, str) for scope in scopes)
    if not (named and isinstance(correction, int) and isinstance(groups, int | None)):
        return None
    return MixSettings(tuple(scopes), correction, groups)


def mismatch(name: str, trained: MixSettings, built: MixSettings) -> str | None:
    """Return one sentence on where the settings differ and what to set, or None where they agree.

    Args:
        name: of the layer, in the message; '' for a layer by itself.
        trained: the settings that the checkpoint records.
        built: those of the layer that would load it.
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
    """Return how a message calls the layer of that name."""
    return f'the SN layer {name}' if name else 'the SN layer'


def _shown(settings: MixSettings, fields: list[str]) -> str:
    values = {field: getattr(settings, field) for field in fields}
    return ', '.join(f'{field}={value!r}' for field, value in values.items() if value is not None)
