"""A file is checked before torch reads it, in both of torch's formats."""

from pathlib import Path

import pytest
import torch

from sn_openmmlab.checkpoints.files.file_check import check_file
from sn_openmmlab.checkpoints.files.safe_loading import read_checkpoint
from sn_openmmlab.errors import UsageError
from tests.hostile.pickles import (
    ONES,
    checkpoint,
    in_legacy,
    in_zip,
    list_of,
    storage,
    tensor,
    text,
)

KINDS = {
    'plain': torch.ones(2, 3),
    'parameter': torch.nn.Parameter(torch.ones(2)),
    'strided': torch.ones(4, 6)[1:, ::2].t(),
    'empty': torch.ones(0, 3),
    'end of a storage': torch.ones(5)[5:],
    'half': torch.ones(2).bfloat16(),
    'complex': torch.ones(2, dtype=torch.complex64).conj(),
    'sparse': torch.eye(3).to_sparse(),
    'compressed': torch.eye(3).to_sparse_csr(),
    'meta': torch.ones(2, device='meta'),
    'quantized': torch.quantize_per_tensor(torch.ones(2, 3), 0.1, 0, torch.qint8),
    'nested': torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
}


@pytest.mark.parametrize('attribute', [False, True])
@pytest.mark.parametrize('kind', KINDS)
def test_every_kind_of_tensor_is_read(
    kind: str, attribute: bool, zip_format: bool, tmp_path: Path
) -> None:
    # In the older format torch looks at the sizes of nested tensors before it has read them.
    zip_format = zip_format or kind == 'nested'
    value = KINDS[kind]
    if attribute and kind in ('plain', 'parameter'):
        value = value.clone() if kind == 'plain' else torch.nn.Parameter(value.detach())
        value.note = 'text'
    torch.save({'a.b': value}, tmp_path / 'a.pth', _use_new_zipfile_serialization=zip_format)
    read = read_checkpoint(tmp_path / 'a.pth')['a.b']
    assert type(read) is type(value) and read.dtype == value.dtype and read.layout == value.layout
    if kind == 'plain':
        assert torch.equal(read, value)
        assert getattr(read, 'note', None) == getattr(value, 'note', None)


def test_numbers_without_a_storage_class_are_read(tmp_path: Path) -> None:
    for kind in (torch.uint16, torch.uint64, torch.float8_e4m3fn):
        torch.save({'a.b': torch.ones(3).to(kind)}, tmp_path / 'a.pth')
        assert read_checkpoint(tmp_path / 'a.pth')['a.b'].dtype == kind


def test_programs_are_named(tmp_path: Path) -> None:
    with pytest.warns(DeprecationWarning):
        torch.jit.script(torch.nn.Linear(2, 2)).save(tmp_path / 'program.pt')
    with pytest.raises(UsageError, match=r'program\.pt holds a TorchScript program, not only wei'):
        read_checkpoint(tmp_path / 'program.pt')


def test_one_record_under_many_keys_is_refused(tmp_path: Path) -> None:
    """Torch finds records without regard to upper and lower case, and would load each anew."""
    keys = [f'{i:08b}'.replace('0', 'a').replace('1', 'A') for i in range(256)]
    loads = list_of(*[tensor(storage(text(key), 4000), [4000], [1]) for key in keys])
    file = tmp_path / 'many.pth'
    file.write_bytes(in_zip(checkpoint(loads), {'aaaaaaaa': bytes(16_000)}))
    assert len(torch.load(file, weights_only=True)['meta']) == 256
    with pytest.raises(ValueError, match='storages are larger than the file'):
        check_file(str(file))


def test_sizes_behind_a_legacy_pickle_have_to_be_those_in_it(tmp_path: Path) -> None:
    """Torch would make a storage as large as the number behind the pickle says."""
    held = checkpoint(tensor(storage(text('0'), 4), [4], [1]), 'weight')
    file = tmp_path / 'legacy.pth'
    file.write_bytes(in_legacy(held, {'0': ONES}))
    check_file(str(file))
    file.write_bytes(in_legacy(held, {'0': ONES * 2}))
    with pytest.raises(ValueError, match='two sizes'):
        check_file(str(file))
    for records in ({}, {'0': ONES, '1': ONES}):
        file.write_bytes(in_legacy(held, records))
        with pytest.raises(ValueError, match='keys of the storages'):
            check_file(str(file))
