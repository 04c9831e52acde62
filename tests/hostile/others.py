"""Files of other formats with the name of a checkpoint."""

import bz2
import gzip
import io
import json
import lzma
import pickle
import random
import tarfile
import warnings
from collections.abc import Iterator

import numpy as np
import torch

from tests.hostile.pickles import FORMATS, checkpoint, in_zip

_WEIGHTS = {'state_dict': {'layer.weight': torch.ones(2, 2)}}


def _saved(value: object) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def _tar(members: dict[str, bytes], kind: bytes = tarfile.REGTYPE, link: str = '') -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode='w:', format=tarfile.PAX_FORMAT) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size, member.type, member.linkname = len(content), kind, link
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def _tars() -> Iterator[tuple[str, bytes]]:
    """Yield torch's oldest format, with members that lead elsewhere."""
    count = pickle.dumps(0, 2)
    whole = {'storages': count * 2, 'tensors': count, 'pickle': pickle.dumps(_WEIGHTS, 2)}
    yield 'tar', _tar(whole)
    for name in ('../../escaped', '/tmp/escaped', '..'):
        yield f'tar with {name}', _tar({**whole, name: b'x'})
        yield f'tar of {name}', _tar({name: b'x'})
    for kind, link in (
        (tarfile.SYMTYPE, '/etc/passwd'),
        (tarfile.LNKTYPE, '../../escaped'),
        (tarfile.CHRTYPE, ''),
        (tarfile.FIFOTYPE, ''),
        (tarfile.DIRTYPE, ''),
    ):
        yield f'tar of {kind!r}', _tar({'storages': b''}, kind, link)
    head = bytearray(_tar(whole))
    head[124:136] = b'77777777777\0'
    yield 'tar of a huge member', bytes(head)


def _programs() -> Iterator[tuple[str, bytes]]:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        for name, module in (
            ('linear', torch.nn.Linear(2, 2)),
            ('relu', torch.nn.ReLU()),
        ):
            file = io.BytesIO()
            torch.jit.save(torch.jit.script(module), file)
            yield f'TorchScript {name}', file.getvalue()
    yield 'whole model', _saved(torch.nn.Linear(2, 2))
    yield 'optimizer', _saved(torch.optim.SGD([torch.ones(1)], 0.1))


def _values() -> Iterator[tuple[str, bytes]]:
    """Yield files of torch.save that hold no weights by name."""
    for value in (None, 1, 'text', [1], (1,), {1: 2}, torch.ones(1), [torch.ones(1)], {1, 2}, b'x',
                  {'state_dict': None}, {'state_dict': [1]}, {'state_dict': {1: torch.ones(1)}},
                  {'state_dict': torch.ones(1)}, {('a',): torch.ones(1)}, {None: 1}, 1.5, True,
                  torch.float32, torch.device('cpu'), torch.Size([1]), 10**300):  # fmt: skip
        yield f'value {str(value)[:30]!r}', _saved(value)
    for protocol in range(6):
        yield f'pickle {protocol}', pickle.dumps({'state_dict': {}}, protocol)
        yield f'pickle {protocol} of an array', pickle.dumps(np.ones(3), protocol)
        for kind, write in FORMATS.items():
            yield f'{kind} of protocol {protocol}', write(pickle.dumps({'a': [1]}, protocol))


def _foreign() -> Iterator[tuple[str, bytes]]:
    saved = _saved(_WEIGHTS)
    for tool in (gzip, bz2, lzma):
        yield tool.__name__, tool.compress(saved)
    header = json.dumps({'w': {'dtype': 'F32', 'shape': [1], 'data_offsets': [0, 4]}}).encode()
    yield 'safetensors', len(header).to_bytes(8, 'little') + header + bytes(4)
    yield 'huge safetensors', (2**63 - 1).to_bytes(8, 'little') + header
    file = io.BytesIO()
    np.save(file, np.ones(3))
    yield 'npy', file.getvalue()
    file = io.BytesIO()
    np.save(file, np.array([{}], object))
    yield 'npy of objects', file.getvalue()
    file = io.BytesIO()
    np.savez(file, a=np.ones(3))
    yield 'npz', file.getvalue()
    yield from (
        ('empty', b''),
        ('text', b'weights\n'),
        ('json', b'{"state_dict": {}}'),
        ('html', b'<!DOCTYPE html><html>404</html>'),
        ('git-lfs', b'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n'),
        ('python', b'import os\nos.system("true")\n'),
        ('png', b'\x89PNG\r\n\x1a\n' + bytes(100)),
        ('jpeg', b'\xff\xd8\xff\xe0' + bytes(100)),
        ('hdf5', b'\x89HDF\r\n\x1a\n' + bytes(100)),
        ('elf', b'\x7fELF' + bytes(100)),
        ('onnx', b'\x08\x08\x12\x07pytorch' + bytes(50)),
        ('zeros', bytes(100_000)),
        ('ones', b'\xff' * 100_000),
        ('stops', b'.' * 1000),
        ('marks', b'(' * 100_000),
        ('zip header', b'PK\x03\x04'),
        ('empty zip', b'PK\x05\x06' + bytes(18)),
        ('spanned zip', b'PK\x07\x08' + saved),
    )
    dice = random.Random(2)
    for i in range(60):
        yield f'random {i}', dice.randbytes(dice.choice([1, 3, 10, 100, 1000, 10_000]))
        yield f'random pickle {i}', in_zip(checkpoint(dice.randbytes(dice.randrange(1, 60))))


def others() -> Iterator[tuple[str, bytes]]:
    """Yield files by name; those of torch.save with plain content are read."""
    for parts in (_tars, _programs, _values, _foreign):
        yield from parts()
