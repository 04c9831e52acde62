"""The tables of known times hold ratios and means worked out by hand."""

import json

import pytest

from studies.presentation import benchmark_tables as tables

CASE = {'shape': [2, 3, 4, 5], 'format': 'NCHW', 'dtype': 'float32', 'what': 'forward'}
# Three rounds; the last one took twice as long for all.
TIMES = {
    'BN': [2.0, 2.0, 4.0],
    'GN': [1.0, 1.0, 2.0],
    'SN plain': [20.0, 20.0, 40.0],
    'SN fused': [4.0, 2.0, 8.0],
}
RECORDS = [
    {**CASE, 'milliseconds': TIMES},
    {**CASE, 'milliseconds': {**TIMES, 'SN fused': [1.0, 1.0, 2.0]}},
]


def test_the_geometric_mean():
    assert tables.geometric_mean([1, 100]) == pytest.approx(10)


def test_the_summary_compares_over_the_shapes():
    header, _, row = tables.summary_table(RECORDS).split('\n')

    assert header.split(' | ')[3:] == [
        'fused / BN',
        'worst shape',
        'fused / GN',
        'fused / SN plain |',
    ]
    # Over BN 2, 1, 2 and ½, ½, ½; over GN twice as much; over plain SN a tenth of that over BN.
    assert row == (
        '| float32 | NCHW | forward | 1.00 (0.71 to 1.00) | 2.00 | 2.00 (1.41 to 2.00) '
        '| 0.10 (0.07 to 0.10) |'
    )


def test_a_layer_that_was_not_timed_has_no_ratio():
    evaluated = {'BN': [1.0], 'SN fused': [1.0]}
    records = [*RECORDS, {**CASE, 'what': 'evaluation', 'milliseconds': evaluated}]

    assert tables.summary_table(records).endswith(
        '| float32 | NCHW | evaluation | 1.00 (1.00 to 1.00) | 1.00 | - | - |'
    )


def test_small_maps_have_tables_of_their_own():
    large = {**RECORDS[0], 'shape': [2, 5, 100, 100]}
    page = tables.all_tables({'records': [large, RECORDS[0]]})

    titles = [line for line in page.splitlines() if line.startswith('#')]
    assert titles == [
        '## Maps of a detector',
        '### float32, NCHW, forward, maps of a detector (ms)',
        '## Fewer than 10⁵ elements, one thread',
        '### float32, NCHW, forward, fewer than 10⁵ elements, one thread (ms)',
        '## Memory',
    ]


def test_a_row_per_shape():
    assert tables.time_table(RECORDS[:1]).split('\n')[-1] == (
        '| 2×3×4×5 | 2.00 | 1.00 | 20.0 | 4.00 | 2.00 (1.00 to 2.00) |'
    )


def test_memory_growth_steps_bandwidth_and_errors():
    memory = [{**CASE, 'bytes': {'BN': 2e6, 'SN fused': 1e6}}]
    growth = [{'elements': 1000, 'milliseconds': {'BN': [1.0], 'SN fused': [2.0]}}]
    times = {'GN': [100.0, 110.0], 'SN': [110.0, 110.0]}
    steps = {'milliseconds': times, 'norm_share': {'GN': 0.125, 'SN': 0.0204}}
    bandwidth = [{**CASE, 'share_of_copy': {'BN': 0.5, 'SN fused': 0.9}}]
    errors = {'backend': 'aten', 'dtype': 'float32', 'format': 'NCHW', 'bound': 1e-4}

    assert tables.memory_table(memory).endswith('| 2×3×4×5 | 2.0 | 1.0 | 0.500 |')
    assert tables.growth_table(growth).endswith('| 1,000 | 1.00 | 2.00 | 2000.00 |')
    assert tables.step_table(steps).split('\n')[2:] == [
        '| GN | 105 (100 to 110) | 1.050 (1.000 to 1.100) | 12.5% |',
        '| SN | 110 (110 to 110) | 1.000 (1.000 to 1.000) | 2.0% |',
    ]
    assert tables.bandwidth_table(bandwidth).endswith('| 50% | 90% |')
    table = tables.correctness_table([{**errors, 'errors': {'y': 2e-7}}])
    assert table.endswith('| aten | float32 | NCHW | 2.0e-07 | 1e-04 |')


def test_steps_on_busy_cores():
    alone = {'spin': [100.0, 120.0, 90.0], 'sleep': [110.0, 130.0, 110.0]}
    beside = {'spin': [4000.0, 2000.0], 'sleep': [300.0]}
    data = {'beside': 4, 'milliseconds': {'alone': alone, 'beside': beside}}
    assert tables.busy_table(data).split('\n')[2:] == [
        '| alone | 100 (90 to 120) | 110 (110 to 130) | 1.100 |',
        '| beside 4 single-threaded processes | 3000 (2000 to 4000) | 300 (300 to 300) | 0.100 |',
    ]


def test_the_committed_data_make_the_committed_tables(repo):
    folder = repo / 'docs' / 'speed'
    data = json.loads((folder / 'cpu.json').read_text())

    assert tables.all_tables(data) == (folder / 'cpu.md').read_text().split('\n\n', 1)[1].strip()
