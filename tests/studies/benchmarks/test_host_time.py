"""The benchmark of host time measures all layers and directions, and the page shows its numbers.

`tests/kernels/triton/compile_kernels.py` runs the op on the stubbed GPU.
"""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from studies.benchmarks import host_time
from studies.benchmarks.baselines import FUSED
from studies.presentation.benchmark_tables import host_table


def test_all_take_turns_in_both_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {'forward': lambda: None, 'backward': lambda: None}
    monkeypatch.setattr(host_time, 'use_backend', nullcontext)
    monkeypatch.setattr(host_time, '_launches', lambda: nothing)
    monkeypatch.setattr(host_time, 'CALLS_PER_TURN', 2)

    times = host_time.time_on_host(3)

    assert list(times) == ['forward', 'backward']
    for layers in times.values():
        assert list(layers) == [*host_time.SHAPES, host_time.LAUNCHES, host_time.NOTHING]
        assert all(len(own) == 3 and min(own) > 0 for own in layers.values())


def test_ratios_are_of_the_times_of_one_round() -> None:
    times = {'A': [10.0, 20.0, 40.0], 'B': [1.0, 1.0, 1.0], FUSED: [10.0, 10.0, 80.0]}

    lines = host_table({'microseconds': {'forward': times}}).splitlines()

    assert lines[0] == '|  |  | µs | over A | over B |'
    ratios = '1.00 (0.50 to 2.00) | 10.00 (10.00 to 80.00)'
    assert lines[-1] == f'| forward | {FUSED} | 10.0 (10.0 to 80.0) | {ratios} |'


def test_page_shows_what_was_measured(repo: Path) -> None:
    data = json.loads((repo / 'docs/speed/host.json').read_text())
    assert host_table(data) in (repo / 'docs/speed/host.md').read_text()
