"""Finding the weights in a checkpoint."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from sn_openmmlab.checkpoints.names import few, shown
from sn_openmmlab.errors import UsageError

# In this order if a checkpoint has several, such as weights and their moving average.
_NESTS = ('state_dict', 'model', 'net')


def find_weights(checkpoint: Mapping[str, Any]) -> OrderedDict[str, Tensor]:
    """Return the weights of a checkpoint by name, bare or nested in it.

    Optimizer, epoch and settings are left out. What the layers recorded in torch's `_metadata` is
    kept.

    Raises:
        UsageError: There are no weights; there are several sets, none under a usual name; or an
            entry with the name of a weight is not a tensor, or is a nested tensor.
    """
    nests = {name: value for name, value in checkpoint.items() if _holds_tensors(value)}
    # A tensor with a plain name beside a nest is a setting, such as the best accuracy.
    if _holds_tensors(checkpoint) and not (nests and all('.' not in name for name in checkpoint)):
        return _tensors(checkpoint)
    if not nests:
        raise UsageError('it holds no tensor by name.')
    names = [name for name in _NESTS if name in nests] or list(nests)
    if len(names) > 1 and names[0] not in _NESTS:
        raise UsageError(f'it holds several sets of weights, {few(names)}: save only one of them.')
    return _tensors(nests[names[0]])


def weights_for_mmengine(
    checkpoint: Mapping[str, Any], prefix: str | None = None
) -> OrderedDict[str, Tensor]:
    """Return the weights that MMEngine would load, by the names that it would look for.

    What the layers recorded in torch's `_metadata` is kept.

    Args:
        checkpoint: The checkpoint as it was read.
        prefix: What the names to load start with. It is removed from them.

    Raises:
        UsageError: MMEngine would find no weights, since they lie elsewhere or have another
            prefix.
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
        raise UsageError(f'none of its weights starts with {start}: their names are {few(whole)}.')
    weights._metadata = renamed(getattr(state, '_metadata', None) or {})
    return weights


def _check_nests(checkpoint: Mapping[str, Any]) -> None:
    nests = [name for name, value in checkpoint.items() if _holds_tensors(value)]
    if nests:
        raise UsageError(
            f'its weights lie under {shown(nests[0])!r}, where MMEngine does not look: name the '
            "file in an init_cfg=dict(type='SNPretrained', checkpoint=FILE), or save the weights "
            "under 'state_dict'."
        )


def _holds_tensors(value: Any) -> bool:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        return False
    return any(isinstance(item, Tensor) for item in value.values())


def _tensors(state: Mapping[str, Any]) -> dict[str, Tensor]:
    for name, value in state.items():
        # A plain name among bare weights, such as epoch, is a setting.
        if '.' in name and not isinstance(value, Tensor):
            raise UsageError(f'{shown(name)} is not a tensor, but a {type(value).__name__}.')
        # It has no shape.
        if isinstance(value, Tensor) and value.is_nested:
            raise UsageError(f'{shown(name)} is not one array, but a nested tensor.')
    weights = OrderedDict((n, value) for n, value in state.items() if isinstance(value, Tensor))
    weights._metadata = getattr(state, '_metadata', None) or {}
    return weights
