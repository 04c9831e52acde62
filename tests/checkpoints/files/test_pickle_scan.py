"""The scan of a pickle finds what it would call and load, and refuses what torch never writes."""

import io
import pickle
import pickletools
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import pytest
import torch

from sn_openmmlab.checkpoints.files.pickle_scan import Made, Scan, Storage, scan_pickle
from tests.hostile.pickles import call, dict_of, list_of, name, number, storage, text, tuple_of


def scan(opcodes: bytes) -> tuple[Scan, list[tuple[str, tuple]]]:
    """Return what a pickle of these opcodes would do, and the calls that it would make."""
    calls: list[tuple[str, tuple]] = []
    stream = io.BytesIO(b'\x80\x02' + opcodes + b'.rest')
    found = scan_pickle(stream, lambda name, arguments: calls.append((name, arguments)))
    assert stream.read() == b'rest'
    return found, calls


@pytest.mark.parametrize(
    'value', [None, True, 1, -(2**40), 1.5, 'text', (1, 2), (1, (2, 'a')), [1, [2]], ()]
)
def test_plain_values_are_those_of_pickle(value: Any) -> None:
    found, calls = scan(pickle.dumps(value, 2)[2:-1])
    assert found == Scan(value, {})
    assert calls == []


def test_calls_are_found_with_their_names_in_python_3() -> None:
    value = [OrderedDict(a=1), Counter('ab'), {1}, 1j, getattr, b'x']
    found, calls = scan(pickle.dumps(value, 2)[2:-1])
    assert [name for name, _ in calls] == [
        'collections.OrderedDict',
        'collections.Counter',
        'builtins.set',
        'builtins.complex',
        '_codecs.encode',
    ]
    assert calls[-1] == ('_codecs.encode', ('x', 'latin1'))
    assert found.value[4].full == 'builtins.getattr'
    assert [item.maker for item in found.value if isinstance(item, Made)][:2] == [
        'collections.OrderedDict',
        'collections.Counter',
    ]


def test_states_are_calls_of_their_maker() -> None:
    _, calls = scan(call('numpy.dtype', text('f8')) + b'}b')
    assert calls == [('numpy.dtype', ('f8',)), ('numpy.dtype.__setstate__', ({},))]


@pytest.mark.parametrize(
    ('kind', 'size'),
    [(torch.float32, 4), (torch.float64, 8), (torch.bool, 1), (torch.bfloat16, 2),
     (torch.complex128, 16), (torch.int64, 8), (torch.uint16, 1)],
)  # fmt: skip
def test_storages_are_those_that_torch_saves(kind: torch.dtype, size: int, tmp_path: Path) -> None:
    held = torch.zeros(5, dtype=kind)
    torch.save([held, held[1:], torch.ones(2, dtype=kind)], tmp_path / 'saved.pth')
    with zipfile.ZipFile(tmp_path / 'saved.pth') as archive:
        (name,) = (x for x in archive.namelist() if x.endswith('/data.pkl'))
        pickled = archive.read(name)
    found = scan_pickle(io.BytesIO(pickled), lambda *_: None)
    bytes_ = [5 * kind.itemsize, 2 * kind.itemsize]
    assert list(found.storages) == ['0', '1']
    assert [part.numel * part.size for part in found.storages.values()] == bytes_
    assert {part.size for part in found.storages.values()} == {size}


def test_a_part_of_a_storage() -> None:
    held = storage(text('0'), 9, views=tuple_of(text('v'), number(2), number(3)))
    found, _ = scan(held)
    assert (found.value.key, found.value.numel) == ('0', 3)
    assert isinstance(found.value, Storage) and found.storages['0'].numel == 9


@pytest.mark.parametrize('opcode', pickletools.opcodes, ids=lambda opcode: opcode.name)
def test_no_opcode_outside_of_torchs_is_passed(opcode: pickletools.OpcodeInfo) -> None:
    """Torch's own reader knows these; all others are refused."""
    known = {
        'PROTO', 'STOP', 'NONE', 'NEWFALSE', 'NEWTRUE', 'BININT', 'BININT1', 'BININT2', 'BINFLOAT',
        'BINUNICODE', 'SHORT_BINSTRING', 'LONG1', 'EMPTY_TUPLE', 'EMPTY_LIST', 'EMPTY_DICT', 'MARK',
        'TUPLE', 'TUPLE1', 'TUPLE2', 'TUPLE3', 'APPEND', 'APPENDS', 'SETITEM', 'SETITEMS', 'GLOBAL',
        'REDUCE', 'NEWOBJ', 'BUILD', 'BINPERSID', 'BINPUT', 'LONG_BINPUT', 'BINGET', 'LONG_BINGET',
    }  # fmt: skip
    if opcode.name not in known:
        argument = b'1\n1\n' if opcode.code in 'giILpFPVSc' else bytes(16)
        with pytest.raises((UnpicklingError, ValueError, KeyError)):
            scan(b'(NNN' + opcode.code.encode('latin-1') + argument)


@pytest.mark.parametrize(
    'opcodes',
    [
        b'0',
        b'',
        b'NN',
        b'h\x07',
        b'\x85',
        b'NNa',
        name('os.system') + b'Nb',
        b']' + b')R',
        tuple_of(b'N') + b')\x81',
        name('os.system') + b']R',
        tuple_of(text('module'), name('os.system')) + b'Q',
        text('0') + b'Q',
        storage(text('0'), -1),
        storage(number(0), 4),
        storage(text('0'), 4, 'os.system'),
        storage(text('0'), 4, 'torch.OddStorage'),
        storage(text('0'), 4) + storage(text('0'), 5) + b'\x86',
        storage(text('0'), 4) + storage(text('0'), 4, 'torch.LongStorage') + b'\x86',
        storage(text('0'), 4, views=tuple_of(text('v'), number(2), number(3))),
        storage(text('0'), 4, views=tuple_of(text('v'), number(-1), number(3))),
        dict_of([(tuple_of(*[b'N'] * 200), b'N')]),
        dict_of([(call('torch.Size', tuple_of()), b'N')]),
    ],
)  # fmt: skip
def test_what_torch_never_writes_is_refused(opcodes: bytes) -> None:
    with pytest.raises((UnpicklingError, ValueError, KeyError, IndexError)):
        scan(opcodes)


def test_doubled_tuples_are_counted_not_visited() -> None:
    opcodes = b')q\x00' + b''.join(
        b'h' + bytes([i]) + b'h' + bytes([i]) + b'\x86q' + bytes([i + 1]) for i in range(200)
    )
    found, _ = scan(tuple_of(opcodes))
    assert found.value[-1].size > 2**200
    with pytest.raises(UnpicklingError, match='too many parts'):
        scan(list_of(opcodes, dict_of([(b'h\xc8', b'N')])))


def test_a_string_that_is_longer_than_the_file_is_refused() -> None:
    with pytest.raises(ValueError):
        scan(b'X\xff\xff\xff\xffabc')


def test_numbers_of_numpy_may_be_keys() -> None:
    found, _ = scan(pickle.dumps({np.float32(1): 'x'}, 2)[2:-1])
    assert found.value == {}
