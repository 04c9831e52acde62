"""Damage that torch does not notice is found."""

from pathlib import Path

import torch

from sn_openmmlab.checkpoints.files.damage import is_damaged


def test_whole_files_are_not_damaged(tmp_path: Path) -> None:
    file = tmp_path / 'weights.pth'
    for zipped in (True, False):
        torch.save({'w': torch.ones(1000)}, file, _use_new_zipfile_serialization=zipped)
        assert not is_damaged(file)


def test_a_byte_is_enough(tmp_path: Path) -> None:
    file = tmp_path / 'weights.pth'
    torch.save({'w': torch.ones(1000)}, file)
    content = bytearray(file.read_bytes())
    place = content.index(torch.ones(100).numpy().tobytes())
    content[place] ^= 1
    file.write_bytes(content)
    assert torch.load(file, weights_only=True)['w'][0] != 1
    assert is_damaged(file)


def test_damage_to_what_holds_the_parts_together(tmp_path: Path) -> None:
    file = tmp_path / 'weights.pth'
    torch.save({'w': torch.ones(1000)}, file)
    content = file.read_bytes()
    file.write_bytes(content[:64] + bytes(64) + content[128:])
    assert is_damaged(file)
