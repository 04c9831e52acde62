"""Where a checkpoint holds its weights."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from sn_openmmlab.checkpoints.names import few, shown
from sn_openmmlab.errors import UsageError

# In this order where a checkpoint has several, as one with an average beside the weights.
_NESTS = ('state_dict', 'model', 'net')


def find_weights(checkpoint: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the weights of a checkpoint by name, be they bare or nested.

    What lies beside them (optimizer, epoch, settings) is left out.

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
    return {name: value for name, value in state.items() if isinstance(value, Tensor)}
