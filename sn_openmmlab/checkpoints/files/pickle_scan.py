"""What a pickle would do, found out without doing it.

Torch's own reader with `weights_only=True` calls only functions that it knows, but with any
arguments: some take gigabytes or hours. Here the machine of a pickle runs with placeholders for all
that it would make.
"""

import pickletools
import re
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections.abc import Callable
from dataclasses import dataclass
from pickle import UnpicklingError
from typing import IO, Any, NamedTuple

from torch.serialization import StorageType


@dataclass(frozen=True, eq=False)
class Name:
    """A function, class or value that the pickle names, such as `torch.FloatStorage`."""

    full: str


@dataclass(frozen=True, eq=False)
class Made:
    """What a call of `maker` would return."""

    maker: str


@dataclass(frozen=True, eq=False)
class Storage:
    """Memory of a tensor.

    Attributes:
        key: of the record that holds it.
        numel: the number of its elements.
        size: of an element, in bytes.
    """

    key: str
    numel: int
    size: int


class Tuple(tuple):
    """A tuple, with the number of its items and of those of the tuples in it.

    Tuples that hold the same tuple twice can have 2ⁿ items in n bytes. Python visits all of them to
    find or to print one.
    """

    size: int


# Names as keys have one item, and a few may be a tuple of numbers.
_LONGEST_KEY = 100
_CONSTANTS = {'NONE': None, 'NEWFALSE': False, 'NEWTRUE': True}
_LITERALS = frozenset(
    {'BININT', 'BININT1', 'BININT2', 'BINFLOAT', 'BINUNICODE', 'SHORT_BINSTRING', 'LONG1'}
)
_IGNORED = frozenset({'PROTO', 'STOP'})
_SMALL = {'EMPTY_TUPLE': 0, 'TUPLE1': 1, 'TUPLE2': 2, 'TUPLE3': 3}


class Scan(NamedTuple):
    """What a pickle would do.

    Attributes:
        value: what it would return, with placeholders; dicts are empty.
        storages: that it would load, by key.
    """

    value: Any
    storages: dict[str, Storage]


def scan_pickle(stream: IO[bytes], check_call: Callable[[str, tuple], None]) -> Scan:
    """Return what the pickle at the position of a stream would do. The stream is then behind it.

    Args:
        stream: of the file.
        check_call: gets the name of each function that would be called, and its arguments. What
            sets the state of an object has the name of its maker with `.__setstate__` behind.

    Raises:
        UnpicklingError: it does something that no `torch.save` asks for.
        Exception: it is cut short or damaged, as `pickletools` says.
    """
    return _Machine(check_call).run(stream)


class _Machine:
    """The stack, the marks and the memo of a pickle, with placeholders."""

    def __init__(self, check_call: Callable[[str, tuple], None]) -> None:
        self._check_call = check_call
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}
        self._storages: dict[str, Storage] = {}

    def run(self, stream: IO[bytes]) -> Scan:
        for opcode, argument, _ in pickletools.genops(stream):
            name = opcode.name
            if name in _LITERALS:
                self._stack.append(argument)
            elif name in ('BINPUT', 'LONG_BINPUT'):
                self._memo[argument] = self._stack[-1]
            elif name in ('BINGET', 'LONG_BINGET'):
                self._stack.append(self._memo[argument])
            elif name in _CONSTANTS:
                self._stack.append(_CONSTANTS[name])
            elif name in _SMALL:
                self._stack.append(_tuple(self._pop(_SMALL[name])))
            elif name not in _IGNORED:
                self._step(name, argument)
        (value,) = self._stack
        return Scan(value, self._storages)

    def _step(self, name: str, argument: Any) -> None:
        match name:
            case 'MARK':
                self._marks.append(self._stack)
                self._stack = []
            case 'TUPLE':
                items = self._pop_mark()
                self._stack.append(_tuple(items))
            case 'EMPTY_LIST':
                self._stack.append([])
            case 'EMPTY_DICT':
                self._stack.append({})
            case 'APPEND' | 'APPENDS':
                self._add(self._pop(1) if name == 'APPEND' else self._pop_mark())
            case 'SETITEM' | 'SETITEMS':
                self._set(self._pop(2) if name == 'SETITEM' else self._pop_mark())
            case 'GLOBAL':
                self._stack.append(Name(_full_name(*argument.split(' '))))
            case 'REDUCE' | 'NEWOBJ':
                self._call(*self._pop(2))
            case 'BUILD':
                self._build(*self._pop(1))
            case 'BINPERSID':
                self._load(*self._pop(1))
            case _:
                raise UnpicklingError(f'torch.save does not write {name}')

    def _pop(self, number: int) -> list[Any]:
        start = len(self._stack) - number
        if start < 0:
            raise UnpicklingError('the stack is empty')
        items = self._stack[start:]
        del self._stack[start:]
        return items

    def _pop_mark(self) -> list[Any]:
        items, self._stack = self._stack, self._marks.pop()
        return items

    def _add(self, items: list[Any]) -> None:
        if type(self._stack[-1]) is not list:
            raise UnpicklingError('only lists grow')
        self._stack[-1].extend(items)

    def _set(self, items: list[Any]) -> None:
        check_keys(items[::2])

    def _call(self, function: Any, arguments: Any) -> None:
        if not isinstance(function, Name) or not isinstance(arguments, Tuple):
            raise UnpicklingError('it calls something without a name')
        self._check_call(function.full, arguments)
        self._stack.append(Made(function.full))

    def _build(self, state: Any) -> None:
        target = self._stack[-1]
        if not isinstance(target, Made):
            raise UnpicklingError('only objects have a state')
        self._check_call(f'{target.maker}.__setstate__', (state,))

    def _load(self, label: Any) -> None:
        match label:
            case ('storage', Name(kind), str(key), str(), int(numel), *views) if numel >= 0:
                found = Storage(key, numel, _element_size(kind))
                storage = self._storages.setdefault(key, found)
            case _:
                raise UnpicklingError('only storages lie outside of the pickle')
        if (numel, found.size) != (storage.numel, storage.size):
            raise UnpicklingError('a storage has two sizes')
        match views:
            case [] | [None]:
                self._stack.append(storage)
            case [(str(), int(offset), int(size))] if offset >= 0 <= size <= numel - offset:
                self._stack.append(Storage(key, size, storage.size))
            case _:
                raise UnpicklingError('a part of a storage lies outside of it')


def check_keys(keys: list[Any]) -> None:
    """Raise UnpicklingError if a key takes long to look up."""
    if any(_size(key) > _LONGEST_KEY for key in keys):
        raise UnpicklingError('a key has too many parts')


def _size(value: Any) -> int:
    if isinstance(value, Tuple):
        return value.size
    # Also a tuple, of a size that is not known here.
    return _LONGEST_KEY + 1 if isinstance(value, Made) and value.maker == 'torch.Size' else 1


def _tuple(items: list[Any]) -> Tuple:
    made = Tuple(items)
    made.size = 1 + sum(map(_size, items))
    return made


def _element_size(kind: str) -> int:
    """Return the bytes of an element of a storage, such as `torch.FloatStorage`."""
    if kind == 'torch.storage.UntypedStorage':
        return 1
    if not re.fullmatch(r'torch\.(cuda\.)?\w+Storage', kind):
        raise UnpicklingError(f'GLOBAL {kind} is no storage')
    return StorageType(kind.rpartition('.')[2]).dtype.itemsize


def _full_name(module: str, name: str) -> str:
    """Return the name of a global in Python 3."""
    old = (module, name)
    module, name = NAME_MAPPING.get(old, (IMPORT_MAPPING.get(module, module), name))
    return f'{module}.{name}'
