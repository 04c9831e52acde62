"""Pickles put together from their opcodes, and the two formats of files that torch saves."""

import io
import pickle
import sys
import zipfile
from collections.abc import Iterable, Mapping

from torch.serialization import MAGIC_NUMBER, PROTOCOL_VERSION

# Four float32 ones.
ONES = b'\x00\x00\x80\x3f' * 4


def name(full: str) -> bytes:
    """Return the opcode that pushes a function or class, as `os.system`."""
    module, _, attribute = full.rpartition('.')
    return f'c{module}\n{attribute}\n'.encode()


def text(value: str) -> bytes:
    encoded = value.encode()
    return b'X' + len(encoded).to_bytes(4, 'little') + encoded


def number(value: int) -> bytes:
    size = value.bit_length() // 8 + 1
    return b'\x8a' + bytes([size]) + value.to_bytes(size, 'little', signed=True)


def tuple_of(*items: bytes) -> bytes:
    return b'(' + b''.join(items) + b't'


def list_of(*items: bytes) -> bytes:
    return b'](' + b''.join(items) + b'e'


def dict_of(items: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b'}(' + b''.join(key + value for key, value in items) + b'u'


def call(function: str | bytes, *arguments: bytes) -> bytes:
    function = name(function) if isinstance(function, str) else function
    return function + tuple_of(*arguments) + b'R'


def storage(key: bytes, numel: int, kind: str = 'torch.FloatStorage', views: bytes = b'') -> bytes:
    """Return the opcodes that load a storage; `key` is an opcode too."""
    label = (text('storage'), name(kind), key, text('cpu'), number(numel))
    return tuple_of(*label, *([views] if views else [])) + b'Q'


def tensor(
    held: bytes, size: Iterable[int], stride: Iterable[int], offset: int = 0, maker: str = 'v2'
) -> bytes:
    """Return the opcodes that make a tensor of a storage."""
    shape = [tuple_of(*map(number, values)) for values in (size, stride)]
    hooks = call('collections.OrderedDict')
    return call(
        f'torch._utils._rebuild_tensor_{maker}', held, number(offset), *shape, b'\x89', hooks
    )


def checkpoint(value: bytes, place: str = 'meta') -> bytes:
    """Return a pickle of a checkpoint that holds a value in a place."""
    weights = dict_of([(text('layer.weight'), value)] if place == 'weight' else [])
    items = [(text('state_dict'), weights)]
    if place == 'key':
        items.append((value, b'N'))
    elif place != 'weight':
        items.append((text(place), value))
    return b'\x80\x02' + dict_of(items) + b'.'


def in_zip(pickled: bytes, records: Mapping[str, bytes] | None = None) -> bytes:
    """Return the file of torch's format since 1.6."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, 'w') as archive:
        archive.writestr('archive/data.pkl', pickled)
        archive.writestr('archive/byteorder', sys.byteorder)
        for key, content in ({'0': ONES} if records is None else records).items():
            archive.writestr(f'archive/data/{key}', content)
        archive.writestr('archive/version', '3\n')
    return file.getvalue()


def in_legacy(pickled: bytes, records: Mapping[str, bytes] | None = None) -> bytes:
    """Return the file of torch's format before 1.6."""
    machine = dict(protocol_version=PROTOCOL_VERSION, little_endian=True, type_sizes={})
    if records is None:
        records = {'0': ONES} if text('storage') in pickled else {}
    head = [pickle.dumps(item, 2) for item in (MAGIC_NUMBER, PROTOCOL_VERSION, machine)]
    data = [(len(held) // 4).to_bytes(8, 'little') + held for held in records.values()]
    return b''.join([*head, pickled, pickle.dumps(list(records), 2), *data])


FORMATS = {'zip': in_zip, 'legacy': in_legacy}
