"""Stand-ins for the files that the authors released: their keys and shapes, with drawn weights."""

import json
import math
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

FOLDER = Path(__file__).parent / 'data/released'


def build(layout: str) -> dict:
    """Return a checkpoint as the authors released it, with drawn weights.

    Args:
        layout: The name of a list of keys in `FOLDER`.
    """
    return _build(layout, draw_weight)


def outline(layout: str) -> dict:
    """Return the same, faster, for tests of names, shapes and the order of weights."""
    return _build(layout, outline_weight)


def _build(layout: str, fill: Callable[[str, Sequence[int]], torch.Tensor]) -> dict:
    described = json.loads((FOLDER / f'{layout}.json').read_text())
    # Output layers of detectors are scaled, so that boxes and scores stay in a usable range.
    gain = described.get('gain', {})
    weights = {
        name: fill(name, shape) * gain.get(name, 1) for name, shape in described['shapes'].items()
    }
    wrap = described['wrap']
    return {**described['extra'], wrap: weights} if wrap else weights


def draw_weight(name: str, shape: Sequence[int]) -> torch.Tensor:
    """Draw the stand-in for a released weight from its name, as for tests/data/released."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    noise = torch.randn(tuple(shape), generator=generator)
    part = name.rsplit('.', 1)[-1]
    if part in ('mean_weight', 'var_weight'):
        return noise
    if part == 'running_var':
        return noise.abs() + 0.5
    if part != 'weight':
        return 0.1 * noise
    is_gamma = shape[0] == 1
    return 1 + 0.1 * noise if is_gamma else noise * math.sqrt(2 / math.prod(shape[1:]))


def outline_weight(name: str, shape: Sequence[int]) -> torch.Tensor:
    """Draw a small weight in the same way; return zeros after the first number for a large one."""
    if math.prod(shape) <= 1 << 14:
        return draw_weight(name, shape)
    weight = torch.zeros(tuple(shape))
    weight.view(-1)[0] = zlib.crc32(name.encode())
    return weight
