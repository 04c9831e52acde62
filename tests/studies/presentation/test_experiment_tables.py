"""The tables: known records in, means and deviations worked out by hand out."""

from collections.abc import Callable

import pytest

from studies.experiments.records import Record
from studies.presentation import experiment_tables as summary


@pytest.fixture
def records(make_record: Callable) -> list[Record]:
    """Two norms at two images and one at four, three seeds each."""
    return [
        make_record(norm, batch, seed, (start, start + 0.1 * seed))
        for seed in range(3)
        for norm, batch, start in (('bn', 2, 0.1), ('sn', 4, 0.3), ('sn', 2, 0.2))
    ]


@pytest.mark.parametrize(
    ('values', 'scale', 'digits', 'expected'),
    [
        ([1, 2, 3], 1, 1, '2.0 ± 1.0'),
        # The squares of the deviations add up to 32 over 7.
        ([2, 4, 4, 4, 5, 5, 7, 9], 1, 3, '5.000 ± 2.138'),
        ([0.25, 0.25], 100, 1, '25.0 ± 0.0'),
        ([0.3, 0.5], 100, 2, '40.00 ± 14.14'),
    ],
)
def test_mean_and_sample_deviation(values: list, scale: float, digits: int, expected: str) -> None:
    assert summary.spread(values, scale, digits) == expected


def test_row_of_each_case_has_its_last_metrics_and_each_seed(records: list[Record]) -> None:
    metrics = {'AP': 'coco/bbox_mAP', 'AP50': 'coco/bbox_mAP_50'}
    assert summary.final_table(records, metrics).split('\n') == [
        '| norm | batch | AP | AP50 | AP of each seed |',
        '| --- | --- | --- | --- | --- |',
        '| BN | 2 | 20.0 ± 10.0 | 40.0 ± 20.0 | 10.0, 20.0, 30.0 |',
        '| SN | 4 | 40.0 ± 10.0 | 80.0 ± 20.0 | 30.0, 40.0, 50.0 |',
        '| SN | 2 | 30.0 ± 10.0 | 60.0 ± 20.0 | 20.0, 30.0, 40.0 |',
    ]


def test_column_of_each_epoch(records: list[Record]) -> None:
    assert summary.epoch_table(records).split('\n') == [
        '| norm | batch | epoch 1 | epoch 2 |',
        '| --- | --- | --- | --- |',
        '| BN | 2 | 10.0 ± 0.0 | 20.0 ± 10.0 |',
        '| SN | 4 | 30.0 ± 0.0 | 40.0 ± 10.0 |',
        '| SN | 2 | 20.0 ± 0.0 | 30.0 ± 10.0 |',
    ]


def test_ratios_by_part_and_batch(make_record: Callable) -> None:
    by_seed = {4: [(0.5, 0.3, 0.2)] * 2, 1: [(0.5, 0.3, 0.2), (0.3, 0.3, 0.4)]}
    records = [
        make_record('sn', batch, seed, (0.5,), ratios)
        for batch, pair in by_seed.items()
        for seed, ratios in enumerate(pair)
    ]
    rows = summary.ratio_table(records).split('\n')
    assert rows[0] == '| part | batch | w in | w ln | w bn | w′ in | w′ ln | w′ bn |'
    same = ' | '.join(['0.333 ± 0.000'] * 3)
    # The deviation of two numbers that lie 0.2 apart is 0.2 / √2.
    assert rows[2:4] == [
        f'| backbone | 1 | 0.400 ± 0.141 | 0.300 ± 0.000 | 0.300 ± 0.141 | {same} |',
        f'| backbone | 4 | 0.500 ± 0.000 | 0.300 ± 0.000 | 0.200 ± 0.000 | {same} |',
    ]
    assert [row.split(' | ')[:2] for row in rows[4:]] == [
        [f'| {part}', batch] for part in ('neck', 'bbox_head', 'all') for batch in ('1', '4')
    ]
