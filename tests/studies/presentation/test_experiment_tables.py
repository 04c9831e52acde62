"""The tables of known records hold means and standard deviations worked out by hand."""

from collections.abc import Callable

import pytest

from studies.experiments.records import Record
from studies.presentation import experiment_tables


@pytest.fixture
def records(make_record: Callable) -> list[Record]:
    """Two norms at two images and one at four, three seeds each."""
    return [
        make_record(norm, batch, seed, (start, start + 0.1 * seed))
        for seed in range(3)
        for norm, batch, start in (('bn', 2, 0.1), ('sn', 4, 0.3), ('sn', 2, 0.2))
    ]


def row(record: Record) -> tuple[str, str]:
    return record.variant.upper(), str(record.batch)


@pytest.mark.parametrize(
    ('values', 'scale', 'digits', 'expected'),
    [
        ([1, 2, 3], 1, 1, '2.0 ± 1.0'),
        # The variance is 32 / 7.
        ([2, 4, 4, 4, 5, 5, 7, 9], 1, 3, '5.000 ± 2.138'),
        ([0.25, 0.25], 100, 1, '25.0 ± 0.0'),
        ([0.3, 0.5], 100, 2, '40.00 ± 14.14'),
        ([0.25], 100, 1, '25.0'),
    ],
)
def test_mean_and_standard_deviation(
    values: list, scale: float, digits: int, expected: str
) -> None:
    assert experiment_tables.spread(values, scale, digits) == expected


def test_row_of_each_case_has_its_last_metrics_and_each_seed(records: list[Record]) -> None:
    assert experiment_tables.metric_table(records, ['norm', 'batch'], row).split('\n') == [
        '| norm | batch | AP | AP50 | AP75 | AP of each seed |',
        '| --- | --- | --- | --- | --- | --- |',
        '| BN | 2 | 20.0 ± 10.0 | 40.0 ± 20.0 | 10.0 ± 5.0 | 10.0, 20.0, 30.0 |',
        '| SN | 4 | 40.0 ± 10.0 | 80.0 ± 20.0 | 20.0 ± 5.0 | 30.0, 40.0, 50.0 |',
        '| SN | 2 | 30.0 ± 10.0 | 60.0 ± 20.0 | 15.0 ± 5.0 | 20.0, 30.0, 40.0 |',
    ]


def test_column_of_each_epoch(records: list[Record]) -> None:
    assert experiment_tables.epoch_table(records, ['norm', 'batch'], row).split('\n') == [
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
    rows = experiment_tables.ratio_table(records).split('\n')
    assert rows[0] == '| part | batch | w in | w ln | w bn | w′ in | w′ ln | w′ bn |'
    same = ' | '.join(['0.333 ± 0.000'] * 3)
    # The sample standard deviation of two numbers 0.2 apart is 0.2 / √2.
    assert rows[2:4] == [
        f'| backbone | 1 | 0.400 ± 0.141 | 0.300 ± 0.000 | 0.300 ± 0.141 | {same} |',
        f'| backbone | 4 | 0.500 ± 0.000 | 0.300 ± 0.000 | 0.200 ± 0.000 | {same} |',
    ]
    assert [row.split(' | ')[:2] for row in rows[4:]] == [
        [f'| {part}', batch] for part in ('neck', 'bbox_head', 'all') for batch in ('1', '4')
    ]


def test_batch_ratios_of_the_records_with_sn_in_the_backbone(records: list[Record]) -> None:
    assert experiment_tables.batch_ratio_table(records, ['norm', 'batch'], row).split('\n')[2:] == [
        '| SN | 4 | 0.200 ± 0.000 | 0.333 ± 0.000 |',
        '| SN | 2 | 0.200 ± 0.000 | 0.333 ± 0.000 |',
    ]


def test_page_names_the_machine_and_the_seeds(records: list[Record]) -> None:
    machine = {'device': 'abacus', 'threads': 1, 'torch': '9'}
    assert experiment_tables.page('title', records, machine, ['part']) == (
        '# title\n\nabacus, threads of each training: 1, torch 9; '
        'mean ± sample standard deviation over 3 seeds.\n\npart'
    )
