"""Memory bandwidth of the layers, relative to the bandwidth of a copy."""

from statistics import median
from typing import Any

import torch

from studies.benchmarks.baselines import BN, FUSED
from studies.benchmarks.cases import DTYPES
from studies.benchmarks.timing import time_in_turns

# Full-size reads and writes: x twice and y forward; x and dy twice and dx backward. In evaluation
# mode BN needs fewer than SN.
STREAMS = {'forward': 3, 'forward+backward': 8}
COPY_ELEMENTS = 1 << 28


def copy_bandwidth(device: torch.device, rounds: int) -> float:
    """Return the bytes per second of a copy within the device's memory, reads and writes."""
    source = torch.empty(COPY_ELEMENTS, dtype=torch.float32, device=device)
    target = torch.empty_like(source)
    times = time_in_turns({'copy': lambda: target.copy_(source)}, rounds, device, calls=2)
    return 2 * 4 * COPY_ELEMENTS / (median(times['copy']) * 1e-3)


def with_bandwidth(record: dict[str, Any], copy: float) -> dict[str, Any]:
    """Add to a timed record the bandwidth of SN and BN as a share of `copy` (bytes per second)."""
    elements = torch.Size(record['shape']).numel()
    moved = elements * DTYPES[record['dtype']].itemsize * STREAMS[record['what']]
    shares = {
        name: moved / (median(record['milliseconds'][name]) * 1e-3) / copy for name in (BN, FUSED)
    }
    return {**record, 'share_of_copy': shares}
