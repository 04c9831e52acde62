"""Small checkpoints that would take gigabytes or hours."""

from collections.abc import Iterator

from tests.hostile.pickles import (
    FORMATS,
    call,
    checkpoint,
    dict_of,
    list_of,
    name,
    number,
    storage,
    tensor,
    text,
    tuple_of,
)

_NUMBERS = (2**31 - 1, 2**32, 10**10, 10**12, 10**15, 2**62, 2**63 - 1, 2**64, -1)
_ZERO = text('0')
_DTYPE = 'numpy.dtype'
_MAKERS = (
    'builtins.bytearray',
    '__builtin__.bytearray',
    'torch.Tensor',
    'torch.FloatTensor',
    'torch.LongTensor',
    'torch.Size',
    'numpy.ndarray',
    'builtins.set',
    'builtins.complex',
    'torch.nn.parameter.Parameter',
)
# Alone in a pickle, each lacks what it needs, or is of a later protocol.
_ALONE = (
    *(
        bytes([opcode])
        for opcode in b'012.aetsuRbQdl\x81\x85\x86\x87\x8f\x90\x91\x94\x97\x98\xff\x00'
    ),
    b'',
    b'h\x05',
    b'j\1\0\0\0',
    b'((((',
)
_CORES = ('numpy.core.multiarray', 'numpy._core.multiarray')
_BUFFER = 'mmengine.logging.history_buffer.HistoryBuffer'


def _bytes(content: str, encoding: str = 'latin1') -> bytes:
    return call('_codecs.encode', text(content), text(encoding))


def _doubled(kind: str, times: int) -> bytes:
    """Return the opcodes of a container that holds one twice, which holds one twice, and so on.

    The last of them has the number `times` in the memo.
    """
    opcodes = {'tuple': b')', 'list': b']', 'dict': b'}'}[kind] + b'q\x00'
    for i in range(times):
        old = b'h' + bytes([i])
        if kind == 'tuple':
            opcodes += old + old + b'\x86'
        elif kind == 'list':
            opcodes += list_of(old, old)
        else:
            opcodes += dict_of([(text('a'), old), (text('b'), old)])
        opcodes += b'q' + bytes([i + 1])
    return tuple_of(opcodes)


def _allocations() -> Iterator[tuple[str, bytes]]:
    """Yield values that one call makes, and that are far too large."""
    one = storage(_ZERO, 4)
    for n in _NUMBERS:
        big = number(n)
        for function in _MAKERS:
            yield f'{function} {n}', call(function, big)
            yield f'{function} ({n},)', call(function, tuple_of(big))
            yield f'NEWOBJ {function} {n}', name(function) + tuple_of(big) + b'\x81'
        for core in _CORES:
            for code in ('b', 'f8', 'O'):
                array = call(
                    f'{core}._reconstruct', name('numpy.ndarray'), tuple_of(big), text(code)
                )
                yield f'{core}._reconstruct {code} {n}', array
        for maker in ('v2', 'v3'):
            yield f'size {maker} {n}', tensor(one, [n], [1], maker=maker)
            yield f'stride {maker} {n}', tensor(one, [2], [n], maker=maker)
            yield f'offset {maker} {n}', tensor(one, [1], [1], n, maker=maker)
            yield f'expanded {maker} {n}', tensor(one, [n], [0], maker=maker)
            yield f'expanded twice {maker} {n}', tensor(one, [n, n], [0, 0], maker=maker)
        yield f'storage {n}', tensor(storage(_ZERO, n), [1], [1])
        yield (
            f'view {n}',
            tensor(storage(_ZERO, 4, views=tuple_of(text('v'), number(0), big)), [1], [1]),
        )
        shape = tuple_of(big, big)
        yield (
            f'meta {n}',
            call(
                'torch._utils._rebuild_meta_tensor_no_storage',
                name('torch.float32'),
                shape,
                shape,
                b'\x89',
            ),
        )
        layout = call('torch.serialization._get_layout', text('torch.sparse_coo'))
        yield (
            f'sparse {n}',
            call(
                'torch._utils._rebuild_sparse_tensor',
                layout,
                tuple_of(tensor(one, [1, 1], [1, 1]), tensor(one, [1], [1]), tuple_of(big)),
            ),
        )
        yield f'wrapper {n}', call(
            'torch._utils._rebuild_wrapper_subclass', name('torch.Tensor'), name('torch.float32'),
            tuple_of(big), tuple_of(number(1)), number(0), layout, text('cpu'), b'\x89',
        )  # fmt: skip
        yield f'device {n}', call(
            'torch._utils._rebuild_device_tensor_from_cpu_tensor',
            tensor(one, [n], [0]), name('torch.float64'), text('cpu'), b'\x89',
        )  # fmt: skip
        how = tuple_of(name('torch.per_tensor_affine'), b'G' + bytes(8), number(0))
        yield f'quantized {n}', call(
            'torch._utils._rebuild_qtensor', storage(_ZERO, 4, 'torch.QInt8Storage'), number(0),
            tuple_of(big), tuple_of(number(0)), how, b'\x89', call('collections.OrderedDict'),
        )  # fmt: skip
        for code in (f'S{n}', f'U{n}', f'V{n}', f'({n},)f8'):
            kind = call(_DTYPE, text(code), b'\x89', b'\x88')
            yield f'scalar {code}', call(f'{_CORES[0]}.scalar', kind)
            yield f'scalars {code}', list_of(*[call(f'{_CORES[1]}.scalar', kind)] * 20)
        state = tuple_of(
            number(1), tuple_of(big), call(_DTYPE, text('f8')), b'\x89', _bytes('a' * 8)
        )
        empty = call(
            f'{_CORES[1]}._reconstruct', name('numpy.ndarray'), tuple_of(number(0)), _bytes('b')
        )
        yield f'array of {n}', empty + state + b'b'


def _encodings() -> Iterator[tuple[str, bytes]]:
    """Yield texts that double in each call, or that take a time as their square."""
    for encoding in (
        'hex',
        'base64',
        'uu',
        'quopri',
        'utf-32',
        'unicode_escape',
        'raw_unicode_escape',
    ):
        opcodes = _bytes('aaaaaaaaaaaaaaaa')
        for _ in range(60):
            opcodes = name('_codecs.encode') + tuple_of(opcodes, text(encoding)) + b'R'
        yield f'60 times {encoding}', opcodes
    for encoding in ('punycode', 'idna', 'rot13', 'zip', 'bz2', 'mbcs', 'undefined', '../../x'):
        yield (
            f'long {encoding}',
            _bytes(''.join(chr(200 + i % 20000) for i in range(300_000)), encoding),
        )


def _doublings() -> Iterator[tuple[str, bytes]]:
    """Yield containers that hold themselves 2ⁿ times, where something visits all of them."""
    for kind in ('tuple', 'list', 'dict'):
        for times in (25, 40, 100, 200):
            bomb = _doubled(kind, times)
            last = b'h' + bytes([times])
            yield f'{kind} {times}', bomb
            yield f'{kind} {times} is called', tuple_of(bomb, last + b')R')
            yield f'{kind} {times} is made', tuple_of(bomb, last + b')\x81')
            yield f'{kind} {times} gets a state', tuple_of(bomb, last + b'}b')
            yield f'{kind} {times} is a storage', tuple_of(bomb, last + b'Q')
            yield f'{kind} {times} is a key', tuple_of(bomb, dict_of([(last, b'N')]))
            yield f'{kind} {times} is in a set', tuple_of(bomb, call('builtins.set', list_of(last)))
            yield f'{kind} {times} is counted', tuple_of(bomb, call('collections.Counter', last))
            yield (
                f'{kind} {times} is a pair',
                tuple_of(bomb, call('collections.OrderedDict', list_of(list_of(last, b'N')))),
            )
            for function in ('torch.Size', 'torch.device', 'builtins.getattr', 'builtins.complex',
                             'torch._utils._rebuild_parameter', 'numpy.dtype', 'builtins.bytearray',
                             'torch.serialization._get_layout', '_codecs.encode'):  # fmt: skip
                yield f'{function} of {kind} {times}', tuple_of(bomb, call(function, last))
                yield (
                    f'{function} of two {kind} {times}',
                    tuple_of(bomb, call(function, last, last)),
                )


def _copies() -> Iterator[tuple[str, bytes]]:
    """Yield a storage that is loaded or shown very often."""
    variants = [f'{"".join(c.upper() if i >> k & 1 else c for k, c in enumerate("abcdefgh"))}'
                for i in range(200)]  # fmt: skip
    loads = [tensor(storage(text(key), 4), [4], [1]) for key in variants]
    yield 'keys in upper and lower case', list_of(*loads)
    keys = [
        b'K\x00',
        text('0'),
        text('./0'),
        text('0/../0'),
        text('../data/0'),
        text('0\0'),
        b'\x88',
    ]
    yield 'keys of one record', list_of(*[tensor(storage(key, 4), [4], [1]) for key in keys])
    held = storage(_ZERO, 4) + b'q\x01'
    shown = [tensor(held, [4, 10**6], [1, 0]), *[tensor(b'h\x01', [4, 10**6], [1, 0])] * 999]
    yield 'a thousand expanded tensors', list_of(*shown)


def _deep() -> Iterator[tuple[str, bytes]]:
    """Yield what is nested very deeply, or in itself."""
    for depth in (100, 10_000, 300_000):
        yield f'lists {depth}', b']' * depth + b'a' * (depth - 1)
        yield f'tuples {depth}', b')' + b'\x85' * depth
        yield f'dicts {depth}', b'}' + (text('a') + b'}') * depth + b's' * depth
        yield f'marks {depth}', b'(' * depth + b't' * depth
    yield 'list in itself', b']q\x00h\x00a'
    yield 'dict in itself', b'}q\x00' + text('a') + b'h\x00s'
    yield 'list in its tuple', b']q\x00h\x00\x85a'
    yield 'buffer in itself', name(_BUFFER) + b')\x81q\x00}' + text('max_length') + b'h\x00sb'
    yield (
        'ordered dict in itself',
        call('collections.OrderedDict') + b'q\x00' + text('a') + b'h\x00s',
    )


def _tokens() -> Iterator[tuple[str, bytes]]:
    """Yield opcodes that announce more than there is."""
    for n in (2**31 - 1, 2**32 - 1):
        size = n.to_bytes(4, 'little')
        for opcode in (b'X', b'T', b'B', b'j', b'r', b'\x8b', b'J', b'\x84'):
            yield f'{opcode!r} of {n}', opcode + size + b'abc'
    for n in (2**40, 2**63 - 1, 2**64 - 1):
        size = n.to_bytes(8, 'little')
        for opcode in (b'\x8d', b'\x8e', b'\x96', b'\x95'):
            yield f'{opcode!r} of {n}', opcode + size + b'abc'
    digits = b'7' * 1_000_000
    for opcode in (b'I', b'L', b'F', b'g', b'p', b'V', b'S'):
        yield f'{opcode!r} of a million digits', opcode + digits + b'\n'
    yield 'the longest LONG1', b'\x8a\xff' + b'\x7f' * 255
    yield 'a megabyte of text', text('a' * 1_000_000)
    yield 'many items', list_of(b'N' * 200_000)
    for opcodes in _ALONE:
        yield f'only {opcodes!r}', opcodes
    for protocol in (0, 1, 3, 4, 5, 6, 255):
        yield f'protocol {protocol}', b'\x80' + bytes([protocol]) + b'N'


def bombs() -> Iterator[tuple[str, bytes]]:
    """Yield files by name, in both formats; some are harmless as a value but not as a weight."""
    parts = (_allocations, _encodings, _doublings, _copies, _deep, _tokens)
    for values in parts:
        for i, (title, opcodes) in enumerate(values()):
            place = ('meta', 'weight', 'optimizer', 'key')[i % 4]
            for kind, write in FORMATS.items():
                yield f'{title} {kind} {place}', write(checkpoint(opcodes, place))
