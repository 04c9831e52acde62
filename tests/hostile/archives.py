"""Archives that are not as torch.save writes them."""

import io
import random
import stat
import zipfile
from collections.abc import Iterator

from tests.hostile.pickles import ONES, checkpoint, in_zip, storage, tensor, text

_PICKLE = checkpoint(tensor(storage(text('0'), 4), [4], [1]), 'weight')
_RECORDS = {
    'archive/data.pkl': _PICKLE,
    'archive/byteorder': b'little',
    'archive/data/0': ONES,
    'archive/version': b'3\n',
    'archive/.data/serialization_id': b'1' * 40,
}
_NAMES = (
    '../../escaped',
    '../data/0',
    '/etc/passwd',
    '/tmp/escaped',
    'a/../../b',
    '..\\..\\b',
    'C:\\windows\\b',
    'archive/../../escaped',
    'archive/data/../../../escaped',
    'archive/data//0',
    'archive/./data/0',
    'archive',
    'archive/',
    '/',
    '.',
    '..',
    '',
    'archive/data.pkl/x',
    'archive/' + 'a' * 60_000,
    'ARCHIVE/DATA.PKL',
    '\u202earchive/data/0',
    'archive/data/\x1b[2J',
)


def _written(records: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, 'w', method) as archive:
        for name, content in records.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return file.getvalue()


def _compressed() -> Iterator[tuple[str, bytes]]:
    """Yield bombs: one record is of zeros or ones, far smaller in the file."""
    methods = {zipfile.ZIP_DEFLATED: (1, 50), zipfile.ZIP_BZIP2: (1,), zipfile.ZIP_LZMA: (1,)}
    for method, sizes in methods.items():
        for name in _RECORDS:
            for megabytes in sizes:
                content = b'1' * (megabytes << 20)
                records = {**_RECORDS, name: content}
                yield f'{name} of {megabytes} MB by {method}', _written(records, method)
        yield f'all by {method}', _written(_RECORDS, method)


def _named() -> Iterator[tuple[str, bytes]]:
    """Yield archives with names that lead elsewhere, in place of a record and beside all."""
    for name in _NAMES:
        yield f'beside {name[:40]!r}', _written({**_RECORDS, name: b'x'})
        yield f'before {name[:40]!r}', _written({name: b'x', **_RECORDS})
        for record in _RECORDS:
            renamed = {name if old == record else old: held for old, held in _RECORDS.items()}
            yield f'{record} as {name[:40]!r}', _written(renamed)
        # The key of a storage is a part of the name of its record.
        key = name.replace('\x1b', '')
        held = checkpoint(tensor(storage(text(key), 4), [4], [1]), 'weight')
        yield f'storage {name[:40]!r}', in_zip(held)
        yield f'storage and record {name[:40]!r}', in_zip(held, {key: ONES})


def _incomplete() -> Iterator[tuple[str, bytes]]:
    """Yield archives without a record, with a record twice, or with an odd one."""
    for record in _RECORDS:
        yield f'without {record}', _written({k: v for k, v in _RECORDS.items() if k != record})
        file = io.BytesIO(_written(_RECORDS))
        with zipfile.ZipFile(file, 'a') as archive:
            archive.writestr(record, _PICKLE)
        yield f'{record} twice', file.getvalue()
        for content in (b'', b'x', b'9' * 5000, b'-1', bytes(100), _PICKLE, b'big'):
            yield f'{record} is {content[:9]!r}', _written({**_RECORDS, record: content})
    yield 'constants', _written({**_RECORDS, 'archive/constants.pkl': _PICKLE})
    yield '.format_version', _written({**_RECORDS, 'archive/.format_version': b'9' * 4000})
    yield '.storage_alignment', _written({**_RECORDS, 'archive/.storage_alignment': b'7' * 5000})
    yield 'sixty thousand records', _written({f'archive/{i}': b'' for i in range(60_000)})
    link = zipfile.ZipInfo('archive/data/1')
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    file = io.BytesIO(_written(_RECORDS))
    with zipfile.ZipFile(file, 'a') as archive:
        archive.writestr(link, '/etc/passwd')
    yield 'a link', file.getvalue()
    yield 'an archive in it', _written({**_RECORDS, 'archive/data/1': _written(_RECORDS)})


def _displaced() -> Iterator[tuple[str, bytes]]:
    """Yield archives whose tables readers look for in different places."""
    whole, other = _written(_RECORDS), _written({'archive/data.pkl': b'other'})
    yield 'after another', other + whole
    yield 'before another', whole + other
    yield 'after a script', b'#!/bin/sh\n' + whole
    yield 'after a header', b'PK\x03\x04' + whole
    yield 'before zeros', whole + bytes(1000)
    for comment in (b'x', whole[-22:], bytes(60_000), b'PK\x05\x06' * 10):
        file = io.BytesIO(whole)
        with zipfile.ZipFile(file, 'a') as archive:
            archive.comment = comment
        yield f'comment {comment[:9]!r} {len(comment)}', file.getvalue()
    # A locator and a record of 64 bits, whose place is another.
    start = int.from_bytes(whole[-6:-2], 'little')
    length = int.from_bytes(whole[-10:-6], 'little')
    for place in (0, start, len(whole), len(whole) - 22, 2**63):
        wide = b''.join([
            b'PK\x06\x06', (44).to_bytes(8, 'little'), bytes(12), (5).to_bytes(8, 'little') * 2,
            length.to_bytes(8, 'little'), start.to_bytes(8, 'little'),
        ])  # fmt: skip
        locator = b'PK\x06\x07' + bytes(4) + place.to_bytes(8, 'little') + b'\1\0\0\0'
        yield f'64 bits at {place}', whole[:-22] + wide + locator + whole[-22:]
        for offset in (40, 48):
            shifted = wide[:offset] + (7).to_bytes(8, 'little') + wide[offset + 8 :]
            yield f'64 bits at {place}, {offset}', whole[:-22] + shifted + locator + whole[-22:]


def _edited() -> Iterator[tuple[str, bytes]]:
    """Yield archives with another number in their tables."""
    whole = _written(_RECORDS)
    dice = random.Random(1)
    tables = [i for i in range(len(whole)) if whole[i : i + 2] == b'PK']
    for i in range(250):
        damaged = bytearray(whole)
        for _ in range(dice.choice([1, 1, 2, 4])):
            place = dice.choice(tables) + dice.randrange(4, 46)
            if place < len(damaged):
                damaged[place] = dice.choice([0, 1, 8, 12, 14, 0x7F, 0xFF, dice.randrange(256)])
        yield f'edited {i}', bytes(damaged)


def archives() -> Iterator[tuple[str, bytes]]:
    """Yield files by name. A few are read: what is odd about them torch never looks at."""
    for parts in (_compressed, _named, _incomplete, _displaced, _edited):
        yield from parts()
