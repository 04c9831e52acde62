"""Checkpoints that were damaged or changed at random, by a seed."""

import copy
import io
import random
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from mmengine.logging import HistoryBuffer

from tests.hostile.pickles import FORMATS

# Opcodes of all protocols, and bytes that pickles and archives are made of.
_BYTES = (
    b'().]}(tabceghijlmnopqrsuBCGIJKLMNQRSTUVX'
    b'\x80\x81\x82\x85\x86\x87\x88\x89\x8a\x8c\x8e\x93\x95\xff\x00'
)
_VALUES: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: -1,
    lambda: 2**70,
    lambda: float('nan'),
    lambda: 'x',
    lambda: '../../escaped',
    lambda: [],
    lambda: {},
    lambda: (),
    lambda: {1: 2},
    lambda: [None],
    lambda: True,
    lambda: torch.ones(3),
    lambda: torch.ones(0),
    lambda: torch.ones(1).expand(1000, 1000),
    lambda: torch.tensor(1 + 2j),
    lambda: np.float32(1),
    lambda: np.ones(2),
    lambda: HistoryBuffer([1.0], [1]),
    lambda: 'a' * 100_000,
)


def saved(content: Any, zip_format: bool = True) -> bytes:
    file = io.BytesIO()
    torch.save(content, file, _use_new_zipfile_serialization=zip_format)
    return file.getvalue()


def _damaged(whole: bytes, dice: random.Random) -> bytes:
    """Return a file with some bytes changed, left out, put in, repeated or swapped."""
    held = bytearray(whole)
    for _ in range(dice.choice([1, 1, 1, 2, 5, 30])):
        if not held:
            break
        a = dice.randrange(len(held))
        b = min(len(held), a + dice.choice([1, 1, 2, 4, 8, 100]))
        match dice.randrange(7):
            case 0:
                held[a] ^= 1 << dice.randrange(8)
            case 1:
                held[a] = dice.choice(_BYTES)
            case 2:
                held[a:b] = b''
            case 3:
                held[a:a] = dice.randbytes(b - a)
            case 4:
                held[a:a] = held[a:b]
            case 5:
                held[a:b] = bytes([dice.choice([0, 0xFF, 0x7F])]) * (b - a)
            case 6:
                del held[dice.randrange(len(held)) :]
    return bytes(held)


def damaged(whole: dict[str, bytes], number: int) -> Iterator[tuple[str, bytes]]:
    """Yield files by name: each of `whole` damaged `number` times."""
    for name, content in whole.items():
        for seed in range(number):
            yield f'{name} damaged {seed}', _damaged(content, random.Random(f'{name} {seed}'))


def damaged_pickles(whole: dict[str, bytes], number: int) -> Iterator[tuple[str, bytes]]:
    """Yield archives whose pickle is damaged, but its checksum right."""
    for name, content in whole.items():
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            records = {part.split('/', 1)[1]: archive.read(part) for part in archive.namelist()}
        pickled = records.pop('data.pkl')
        data = {key[5:]: held for key, held in records.items() if key.startswith('data/')}
        for seed in range(number):
            bytes_ = _damaged(pickled, random.Random(f'pickle of {name} {seed}'))
            for kind, write in FORMATS.items():
                yield f'pickle of {name} damaged {seed} {kind}', write(bytes_, data)


def _places(content: Any, depth: int = 0) -> Iterator[tuple[Any, Any]]:
    """Yield each place in a checkpoint: a container and a key."""
    if isinstance(content, dict | list):
        keys = content if isinstance(content, dict) else range(len(content))
        for key in keys:
            yield content, key
            yield from _places(content[key], depth + 1)
    elif isinstance(content, HistoryBuffer):
        yield from _places(vars(content), depth + 1)


def changed(content: dict[str, Any], number: int) -> Iterator[tuple[str, bytes]]:
    """Yield checkpoints in which some values were replaced, left out or renamed."""
    for seed in range(number):
        dice = random.Random(seed)
        other = copy.deepcopy(content)
        for _ in range(dice.choice([1, 1, 2, 5])):
            places = list(_places(other))
            # Shallow places are few, and matter most.
            owner, key = dice.choice(places[: dice.choice([20, 60, len(places)])])
            match dice.randrange(6):
                case 0:
                    del owner[key]
                case 1 if isinstance(owner, dict):
                    owner[dice.choice(['', 1, None, '../x'])] = owner.pop(key)
                case _:
                    owner[key] = dice.choice(_VALUES)()
        yield f'changed {seed}', saved(other, dice.random() < 0.7)
