"""Calls of torch.save pass with its arguments, and with no others."""

from pickle import UnpicklingError
from typing import Any

import pytest

from sn_openmmlab.checkpoints.files.pickle_rules import check_call
from sn_openmmlab.checkpoints.files.pickle_scan import Made, Name, Storage, Tuple

HELD, TENSOR = Storage('0', 12, 4), Made('torch._utils._rebuild_tensor_v2')
UTILS, HISTORY = 'torch._utils', 'mmengine.logging.history_buffer.HistoryBuffer'
ARRAY = 'numpy._core.multiarray'


def of(*items: Any) -> Tuple:
    made = Tuple(items)
    made.size = 1 + len(items)
    return made


def view(offset: Any, size: Any, stride: Any) -> tuple:
    return HELD, offset, size, stride, False, Made('collections.OrderedDict')


@pytest.mark.parametrize(
    ('name', 'arguments'),
    [
        (f'{UTILS}._rebuild_tensor_v2', view(0, of(3, 4), of(4, 1))),
        (f'{UTILS}._rebuild_tensor_v2', view(11, of(1), of(1))),
        (f'{UTILS}._rebuild_tensor_v2', view(0, of(), of())),
        (f'{UTILS}._rebuild_tensor_v2', view(12, of(0, 5), of(5, 1))),
        (f'{UTILS}._rebuild_tensor_v2', view(3, of(100, 2), of(0, 1))),
        (f'{UTILS}._rebuild_parameter', (TENSOR, True, Made('collections.OrderedDict'))),
        (f'{UTILS}._rebuild_parameter_with_state', (TENSOR, True, None, {})),
        ('_codecs.encode', ('bytes', 'latin1')),
        ('builtins.bytearray', ('bytes', 'latin-1')),
        ('builtins.bytearray', ()),
        ('builtins.set', ([1, 'a'],)),
        ('collections.OrderedDict', ([['a', 1]],)),
        ('torch.Size', (of(1, 2),)),
        ('torch.device', ('cuda', 1)),
        (HISTORY, ()),
        (f'{HISTORY}.__setstate__', ({},)),
        ('numpy.dtype', ('f8', False, True)),
        (f'{ARRAY}._reconstruct', (Name('numpy.ndarray'), of(0), Made('_codecs.encode'))),
        (f'{ARRAY}.scalar', (Made('numpy.dtype'), Made('_codecs.encode'))),
        ('builtins.getattr', (Name(HISTORY), 'mean')),
    ],
)
def test_what_torch_writes_passes(name: str, arguments: tuple) -> None:
    check_call(name, arguments)


@pytest.mark.parametrize(
    ('name', 'arguments'),
    [
        ('os.system', ('true',)),
        ('torch.Tensor', (10**10,)),
        ('numpy.ndarray', (of(10**10),)),
        # Torch would enlarge the storage.
        (f'{UTILS}._rebuild_tensor_v2', view(0, of(13), of(1))),
        (f'{UTILS}._rebuild_tensor_v2', view(12, of(1), of(1))),
        (f'{UTILS}._rebuild_tensor_v2', view(0, of(3, 4), of(5, 1))),
        (f'{UTILS}._rebuild_tensor_v2', view(-1, of(1), of(1))),
        (f'{UTILS}._rebuild_tensor_v2', view(0, of(-1), of(1))),
        (f'{UTILS}._rebuild_tensor_v2', view(0, of(1, 2), of(1))),
        (f'{UTILS}._rebuild_tensor_v2', view(0, of(of(1)), of(1))),
        (f'{UTILS}._rebuild_tensor_v2', (TENSOR, 0, of(1), of(1), False, None)),
        (f'{UTILS}._rebuild_tensor_v2', ()),
        (f'{UTILS}._rebuild_wrapper_subclass', (Name('torch.Tensor'),)),
        (f'{UTILS}._rebuild_parameter', (of(1), True, None)),
        (f'{UTILS}._rebuild_parameter_with_state', (TENSOR, True, None, of(1, 2, 3))),
        (
            'torch._tensor._rebuild_from_type_v2',
            (Name('os.system'), Name('torch.Tensor'), of(), {}),
        ),
        ('_codecs.encode', ('text', 'hex')),
        ('_codecs.encode', ('text', 'punycode')),
        ('builtins.bytearray', (10**10,)),
        ('builtins.set', (10,)),
        ('builtins.complex', ('1' * 100,)),
        ('torch.Size', (10,)),
        ('numpy.dtype', ('S2147483647', False, True)),
        (f'{ARRAY}._reconstruct', (Name('numpy.ndarray'), of(10**10), Made('_codecs.encode'))),
        (f'{ARRAY}._reconstruct.__setstate__', (of(1, of(2**62), Made('numpy.dtype')),)),
        (f'{ARRAY}.scalar', (Name('numpy.dtype'), Made('_codecs.encode'))),
        ('builtins.getattr', ({}, 'mean')),
        (f'{UTILS}._rebuild_parameter.__setstate__', ({},)),
        (HISTORY, ([1], [1])),
    ],
)
def test_other_calls_are_refused_by_name(name: str, arguments: tuple) -> None:
    with pytest.raises(UnpicklingError, match=f'GLOBAL {name} with other'):
        check_call(name, arguments)


def test_keys_of_a_set_that_take_long_are_refused() -> None:
    doubled = Tuple()
    doubled.size = 2**60
    for name, items in (('builtins.set', [doubled]), ('collections.OrderedDict', [[doubled, 1]])):
        with pytest.raises(UnpicklingError, match='too many parts'):
            check_call(name, (items,))
