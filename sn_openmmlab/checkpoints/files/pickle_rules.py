"""Which calls a checkpoint may make, and with what."""

from collections.abc import Callable
from math import prod
from pickle import UnpicklingError
from typing import Any

from sn_openmmlab.checkpoints.files.pickle_scan import Made, Name, Storage, check_keys

Rule = Callable[..., bool]


def check_call(name: str, arguments: tuple) -> None:
    """Raise UnpicklingError unless `torch.save` writes such a call."""
    if not _is_known(name, arguments):
        # As torch says it, for `read_checkpoint`.
        raise UnpicklingError(f'GLOBAL {name} with other arguments than torch.save writes')


def _is_known(name: str, arguments: tuple) -> bool:
    rule = _RULES.get(name)
    try:
        return rule is not None and rule(*arguments)
    except TypeError:
        return False


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Made)


def _are_sizes(values: Any) -> bool:
    """Return whether values are the sizes of a tensor, or its steps in memory."""
    if isinstance(values, Made):
        return values.maker == 'torch.Size'
    return isinstance(values, tuple) and all(type(v) is int and v >= 0 for v in values)


def _view(storage: Any, offset: Any, size: Any, stride: Any, *_: Any) -> bool:
    """Return whether a tensor lies in its storage: torch would enlarge the storage otherwise."""
    if not (isinstance(storage, Storage) and type(offset) is int and offset >= 0):
        return False
    if not (isinstance(size, tuple) and _are_sizes(size) and _are_sizes(stride)):
        return False
    if len(size) != len(stride):
        return False
    last = sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    return 0 in size or offset + last < storage.numel


def _quantized(storage: Any, offset: Any, size: Any, stride: Any, how: Any, *rest: Any) -> bool:
    known = isinstance(how, tuple) and len(how) > 0 and isinstance(how[0], Name)
    return known and _view(storage, offset, size, stride) and prod(size) <= storage.numel


def _parameter(data: Any, *_: Any) -> bool:
    return _is_tensor(data)


def _parameter_with_state(data: Any, _grad: Any, _hooks: Any, state: Any) -> bool:
    return _is_tensor(data) and _is_state(state)


def _is_state(state: Any) -> bool:
    """Return whether it can be the attributes of an object."""
    return isinstance(state, dict | None) or (isinstance(state, tuple) and len(state) == 2)


def _with_attributes(maker: Any, kind: Any, arguments: Any, state: Any) -> bool:
    if not (isinstance(maker, Name) and isinstance(kind, Name) and isinstance(arguments, tuple)):
        return False
    return maker.full in _TENSORS and _is_known(maker.full, arguments) and _is_state(state)


def _sparse(layout: Any, data: Any) -> bool:
    parts = isinstance(data, tuple) and all(
        isinstance(part, Made | bool | None) or _are_sizes(part) for part in data
    )
    return parts and isinstance(layout, Made)


def _meta(kind: Any, size: Any, stride: Any, *_: Any) -> bool:
    return isinstance(kind, Name) and _are_sizes(size) and _are_sizes(stride)


def _pairs(items: Any = None) -> bool:
    """Return whether items can be those of an `OrderedDict` of Python 2: [[key, value], …]."""
    if isinstance(items, list):
        check_keys([pair[0] for pair in items if isinstance(pair, list) and pair])
    return items is None or (isinstance(items, list) and all(map(_is_pair, items)))


def _is_pair(item: Any) -> bool:
    return isinstance(item, list) and len(item) == 2


def _members(items: Any) -> bool:
    if isinstance(items, list):
        check_keys(items)
    return isinstance(items, list)


def _method(owner: Any, name: Any) -> bool:
    return isinstance(owner, Name) and isinstance(name, str)


def _empty_array(kind: Any, shape: Any, code: Any) -> bool:
    return isinstance(kind, Name) and shape == (0,) and isinstance(code, Made | str)


def _array_state(version: Any, shape: Any, *_: Any) -> bool:
    # NumPy compares the shape with the bytes that follow, but not where their number overflows.
    return isinstance(shape, tuple) and _are_sizes(shape) and prod(shape) < 2**40


def _number_type(code: Any, *_: Any) -> bool:
    # As in 'f8'. A longer one could name a type of gigabytes.
    return isinstance(code, str) and len(code) <= 3


def _latin(text: Any, encoding: Any) -> bool:
    # How protocol 2 holds bytes. Other encodings can double the text, or take hours.
    return isinstance(text, str) and encoding == 'latin1'


def _bytes(text: Any = '', encoding: Any = 'latin-1') -> bool:
    return isinstance(text, str) and encoding == 'latin-1'


def _nothing() -> bool:
    return True


def _anything(*_: Any) -> bool:
    return True


_TENSORS: dict[str, Rule] = {
    'torch._utils._rebuild_tensor': _view,
    'torch._utils._rebuild_tensor_v2': _view,
    'torch._utils._rebuild_tensor_v3': _view,
    'torch._utils._rebuild_qtensor': _quantized,
    'torch._utils._rebuild_sparse_tensor': _sparse,
    'torch._utils._rebuild_meta_tensor_no_storage': _meta,
    'torch._utils._rebuild_parameter': _parameter,
}
_RULES: dict[str, Rule] = {
    **_TENSORS,
    'torch._tensor._rebuild_from_type_v2': _with_attributes,
    'torch._utils._rebuild_parameter_with_state': _parameter_with_state,
    'torch._utils._rebuild_nested_tensor': lambda *parts: all(map(_is_tensor, parts)),
    'torch.serialization._get_layout': lambda name: isinstance(name, str),
    'torch.Size': lambda sizes: isinstance(sizes, tuple) and _are_sizes(sizes),
    'torch.device': lambda kind, index=0: isinstance(kind, str) and type(index) is int,
    'builtins.complex': lambda *parts: all(type(part) is float for part in parts),
    'builtins.set': _members,
    'builtins.bytearray': _bytes,
    'builtins.getattr': _method,
    '_codecs.encode': _latin,
    'collections.OrderedDict': _pairs,
    'collections.OrderedDict.__setstate__': lambda state: isinstance(state, dict),
    'collections.Counter': lambda counts: isinstance(counts, dict),
    'mmengine.logging.history_buffer.HistoryBuffer': _nothing,
    'mmengine.logging.history_buffer.HistoryBuffer.__setstate__': lambda s: isinstance(s, dict),
    'numpy.dtype': _number_type,
    'numpy.dtype.__setstate__': _anything,
}
for _core in ('numpy.core.multiarray', 'numpy._core.multiarray'):
    _RULES[f'{_core}._reconstruct'] = _empty_array
    _RULES[f'{_core}._reconstruct.__setstate__'] = lambda s: (
        isinstance(s, tuple) and _array_state(*s)
    )
    _RULES[f'{_core}.scalar'] = lambda kind, value: isinstance(kind, Made)
