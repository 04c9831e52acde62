"""Where a checkpoint holds its weights."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from sn_openmmlab.checkpoints.names import few, shown
from sn_openmmlab.errors import UsageError

# In this order where a checkpoint has several, as one with an average beside the weights.
_NESTS = ('state_dict', 'model', 'net')


def find_weights(checkpoint: Mapping[str, Any]) -> OrderedDict[str, Tensor]:
    """Return the weights of a checkpoint by name, be they bare or nested.

    What lies beside them (optimizer, epoch, settings) is left out; what their layers recorded, as
    torch keeps it in ``_metadata``, goes along.

    Raises:
        UsageError: there are none, there are several sets and none has a usual name, or what has
            the name of a weight is not a tensor, or is a nested one.
    """
    nests = {name: value for name, value in checkpoint.items() if _holds_tensors(value)}
    # A tensor of a plain name beside a nest is a setting, as the best accuracy.
    if _holds_tensors(checkpoint) and not (nests and all('.' not in name for name in checkpoint)):
        return _tensors(checkpoint)
    if not nests:
        raise UsageError('it holds no tensor by name.')
    names = [name for name in _NESTS if name in nests] or list(nests)
    if len(names) > 1 and names[0] not in _NESTS:
        raise UsageError(f'it holds several sets of weights, {few(names)}: save one of them alone.')
    return _tensors(nests[names[0]])


def weights_for_mmengine(
    checkpoint: Mapping[str, Any], prefix: str | None = None
) -> OrderedDict[str, Tensor]:
    """Return the weights that mmengine would load, by the names that it would look for.

    What layers recorded beside their weights (torch's ``_metadata``) goes along.

    Args:
        checkpoint: as it was read.
        prefix: of the names to load; what follows it is left.

    Raises:
        UsageError: it takes them for none, since they lie elsewhere or have another prefix.
    """
    state = checkpoint.get('state_dict', checkpoint)
    whole = {name: value for name, value in state.items() if isinstance(value, Tensor)}
    if not whole:
        _check_nests(checkpoint)
    start = 'module.' if prefix is None else prefix.removesuffix('.') + '.'

    def renamed(items: Mapping[str, Any]) -> OrderedDict[str, Any]:
        return OrderedDict(
            (name.removeprefix(start), value)
            for name, value in items.items()
            if prefix is None or name.startswith(start)
        )

    weights = renamed(whole)
    if whole and not weights:
        raise UsageError(f'no weight in it starts with {start}, as {few(whole)} show.')
    weights._metadata = renamed(getattr(state, '_metadata', None) or {})
    return weights


def _check_nests(checkpoint: Mapping[str, Any]) -> None:
    nests = [name for name, value in checkpoint.items() if _holds_tensors(value)]
    if nests:
        raise UsageError(
            f'its weights lie under {shown(nests[0])!r}, where mmengine does not look: name it in '
            "an init_cfg=dict(type='SNPretrained', checkpoint=FILE), or save them under "
            "'state_dict'."
        )


def _holds_tensors(value: Any) -> bool:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        return False
    return any(isinstance(item, Tensor) for item in value.values())


def _tensors(state: Mapping[str, Any]) -> dict[str, Tensor]:
    for name, value in state.items():
        # A plain name, as epoch, is a setting that lies among bare weights.
        if '.' in name and not isinstance(value, Tensor):
            raise UsageError(f'{shown(name)} is not a tensor, but a {type(value).__name__}.')
        # It has no shape to ask for.
        if isinstance(value, Tensor) and value.is_nested:
            raise UsageError(f'{shown(name)} is not one array, but a nested tensor.')
    weights = OrderedDict((n, value) for n, value in state.items() if isinstance(value, Tensor))
    weights._metadata = getattr(state, '_metadata', None) or {}
    return weights
