"""The measurements, on small inputs: the records of a case, errors, bandwidth, growth, a step."""

import pytest
import torch

from studies.benchmarks import bandwidth, baselines, cases, correctness, growth
from studies.benchmarks.cases import Case, all_cases, measure
from studies.benchmarks.correctness import QUANTITIES, check_backend
from studies.benchmarks.growth import measure_growth

CPU = torch.device('cpu')


@pytest.fixture
def without_compiled(monkeypatch):
    """Leave out the compiled layer, which takes long to start."""

    def some(channels, x):
        return {
            k: v for k, v in baselines.compared_layers(channels, x).items() if k != 'SN compiled'
        }

    for module in (cases, growth):
        monkeypatch.setattr(module, 'compared_layers', some)


def test_every_shape_in_every_format_and_type():
    found = all_cases()

    assert len(found) == len(set(found)) == 10 * 2 * 2
    small = {case.shape for case in found if torch.Size(case.shape).numel() < 10**5}
    assert len(small) == 3
    x = Case((2, 3, 4, 5), 'channels_last', 'bfloat16').tensor(CPU)
    assert x.dtype == torch.bfloat16 and x.shape == (2, 3, 4, 5)
    assert x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()


def test_the_records_of_a_case(without_compiled):
    case = Case((2, 32, 8, 8), 'NCHW', 'float32')

    records = measure(case, CPU, 2)

    assert [record['what'] for record in records] == [
        'forward',
        'forward+backward',
        'evaluation',
        'peak memory',
    ]
    assert all(record['shape'] == (2, 32, 8, 8) for record in records)
    few = {'BN', 'GN', 'SN aten', 'SN fused'}
    for record, layers in zip(records[:3], (few | {'IN', 'SN plain'},) * 2 + (few,), strict=True):
        assert set(record['milliseconds']) == layers
        assert all(len(rounds) == 2 for rounds in record['milliseconds'].values())
    # The output and the gradient of the input at least.
    assert min(records[3]['bytes'].values()) >= 2 * 4 * 2 * 32 * 8 * 8


def test_small_maps_leave_out_the_slow_layers():
    records = measure(Case((2, 64, 8, 8), 'channels_last', 'bfloat16'), CPU, 1)

    for record in records[:3]:
        assert set(record['milliseconds']) == {'BN', 'GN', 'SN aten', 'SN fused'}


def test_growth_over_five_decades(without_compiled, monkeypatch):
    assert 2 * 64 * growth.SIDES[0] ** 2 <= 1.2e3 and 2 * 64 * growth.SIDES[-1] ** 2 >= 1e8
    monkeypatch.setattr(growth, 'SIDES', (3, 5))

    records = measure_growth(CPU, 1)

    assert [record['elements'] for record in records] == [2 * 64 * 9, 2 * 64 * 25]


@pytest.mark.parametrize('backend', ['aten', 'plain'])
def test_the_backends_are_within_the_bounds_of_the_gpu_check(backend, monkeypatch):
    # Larger maps add nothing on the CPU, which does not tile them.
    small = tuple((n, c, min(h, 31), min(w, 31)) for n, c, h, w in correctness.SHAPES)
    monkeypatch.setattr(correctness, 'SHAPES', small)
    records = check_backend(backend, CPU)

    assert {record['format'] for record in records} == {'NCHW', 'channels_last'}
    for record in records:
        assert set(record['errors']) == set(QUANTITIES)
        assert max(record['errors'].values()) <= record['bound']


def test_nan_is_an_infinite_error():
    wrong = torch.full((2,), float('nan'))

    assert correctness._relative_error(wrong, torch.ones(2)) == float('inf')
    assert correctness._relative_error(torch.tensor([2.0, 4.0]), torch.tensor([2.0, 3.999])) < 1e-3


def test_the_bandwidth_counts_the_least_traffic():
    record = {'shape': (1, 1, 10, 10), 'dtype': 'bfloat16', 'what': 'forward'}
    record['milliseconds'] = {'BN': [1.0, 9.0, 1.0], 'SN fused': [2.0]}

    shares = bandwidth.with_bandwidth(record, copy=6e5)['share_of_copy']

    # 100 numbers of 2 bytes, read twice and written once, in 1 and 2 ms.
    assert shares == pytest.approx({'BN': 1.0, 'SN fused': 0.5})
    assert bandwidth.STREAMS == {'forward': 3, 'forward+backward': 8}
