"""The inputs of the measurements, and the measurements of one input."""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from studies.benchmarks.baselines import (
    ATEN,
    BN,
    FUSED,
    GN,
    compared_layers,
    evaluation,
    forward,
    forward_backward,
)
from studies.benchmarks.memory import peak_bytes
from studies.benchmarks.timing import calls_per_turn, threads_for, time_in_turns

# The maps of a ResNet-50 on two images of 800 × 1216, and of heads on 512 and 1024 RoIs.
SHAPES = (
    (2, 64, 200, 304),
    (2, 256, 200, 304),
    (2, 512, 100, 152),
    (2, 1024, 50, 76),
    (2, 2048, 25, 38),
    (512, 256, 7, 7),
    (1024, 256, 14, 14),
)
# Where the fixed cost of a call counts.
SMALL_SHAPES = ((2, 64, 8, 8), (2, 512, 4, 4), (2, 256, 12, 12))
# The layers that are compared on small maps and in evaluation mode.
_FEW = (BN, GN, ATEN, FUSED)
FORMATS = {'NCHW': torch.contiguous_format, 'channels_last': torch.channels_last}
DTYPES = {'float32': torch.float32, 'bfloat16': torch.bfloat16}


@dataclass(frozen=True)
class Case:
    """One input; `format` and `dtype` are keys of `FORMATS` and `DTYPES`."""

    shape: tuple[int, int, int, int]
    format: str
    dtype: str

    def tensor(self, device: torch.device) -> Tensor:
        """Return a new random tensor."""
        x = torch.randn(self.shape, device=device, dtype=DTYPES[self.dtype])
        return x.contiguous(memory_format=FORMATS[self.format])

    def record(self) -> dict[str, Any]:
        """Return what identifies the case in a data file."""
        return asdict(self)


def all_cases() -> list[Case]:
    """Return every shape in every format and type."""
    return [
        Case(shape, memory_format, dtype)
        for memory_format in FORMATS
        for dtype in DTYPES
        for shape in SHAPES + SMALL_SHAPES
    ]


def measure(case: Case, device: torch.device, rounds: int) -> list[dict[str, Any]]:
    """Time the layers on a case, and measure the memory of the fused SN and of BN.

    Return a record per measurement. It holds the case, `what` (forward, forward+backward,
    evaluation or peak memory), and by layer the `milliseconds` of each round or `bytes`.
    """
    x, dy = case.tensor(device), case.tensor(device)
    layers = compared_layers(case.shape[1], x)
    few = {name: layers[name] for name in _FEW}
    if case.shape in SMALL_SHAPES:
        layers = few
    runs = {
        'forward': {name: forward(layer, x) for name, layer in layers.items()},
        'forward+backward': {name: forward_backward(m, x, dy) for name, m in layers.items()},
        'evaluation': {name: evaluation(layer, x) for name, layer in few.items()},
    }
    calls = calls_per_turn(x.numel())
    with threads_for(x.numel()):
        times = {what: time_in_turns(own, rounds, device, calls) for what, own in runs.items()}
    records = [{**case.record(), 'what': what, 'milliseconds': own} for what, own in times.items()]
    memory = {name: peak_bytes(runs['forward+backward'][name], device) for name in (BN, FUSED)}
    return [*records, {**case.record(), 'what': 'peak memory', 'bytes': memory}]
