"""How the cost of a layer grows with the size of its input."""

from typing import Any

import torch

from studies.benchmarks.baselines import BN, FUSED, compared_layers, forward_backward
from studies.benchmarks.cases import Case
from studies.benchmarks.timing import calls_per_turn, threads_for, time_in_turns

# Two samples of 64 channels; the numbers of elements go from 10³ to 10⁸.
SIDES = (3, 5, 9, 16, 28, 50, 88, 157, 280, 497, 884)


def measure_growth(device: torch.device, rounds: int) -> list[dict[str, Any]]:
    """Time forward and backward of BN and the fused SN over five decades of size."""
    records = []
    for side in SIDES:
        case = Case((2, 64, side, side), 'NCHW', 'float32')
        x, dy = case.tensor(device), case.tensor(device)
        layers = compared_layers(64, x)
        functions = {name: forward_backward(layers[name], x, dy) for name in (BN, FUSED)}
        with threads_for(x.numel()):
            times = time_in_turns(functions, rounds, device, calls_per_turn(x.numel()))
        records.append({'elements': x.numel(), 'milliseconds': times})
    return records
