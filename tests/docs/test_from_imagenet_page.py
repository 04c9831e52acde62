"""The prose on starts from ImageNet weights agrees with the committed records."""

import json
from pathlib import Path
from statistics import mean

import pytest

from sn_openmmlab.layers.convert.from_batch_norm import BATCH_RATIO
from studies.experiments import from_imagenet
from studies.experiments.kept_knowledge import Kept, Start, kept_table
from studies.experiments.records import Record, read_records


@pytest.fixture(scope='module')
def page(repo: Path) -> str:
    return (repo / 'docs/results/from_imagenet.md').read_text()


@pytest.fixture(scope='module')
def prose(page: str) -> str:
    """Return the page with its lines joined."""
    return ' '.join(page.split())


@pytest.fixture(scope='module')
def kept(repo: Path) -> dict[Start, Kept]:
    entries = json.loads((repo / 'docs/from_imagenet/kept.json').read_text())['kept']
    found = {}
    for entry in entries:
        values = entry.pop('start')
        start = Start(tuple(values['mean']), tuple(values['var']), values['fitted'])
        found[start] = Kept(start, **entry)
    return found


def at(ratio: float, fitted: bool = False) -> Start:
    even = ((1 - ratio) / 2, (1 - ratio) / 2, ratio)
    return Start(even, even, fitted)


def test_table_agrees_with_the_record(repo: Path, page: str, kept: dict) -> None:
    table = kept_table(list(kept.values()))
    assert table in page
    assert table == (repo / 'docs/from_imagenet/kept.md').read_text().strip()


def test_single_scopes_and_statistics(prose: str, kept: dict) -> None:
    alone, tenth = (0.0, 0.0, 1.0), (0.05, 0.05, 0.9)
    percent = {start: f'{100 * value.agreement:.1f} %' for start, value in kept.items()}
    instance, layer = (Start(share, share) for share in ((0.1, 0.0, 0.9), (0.0, 0.1, 0.9)))
    assert kept[layer].agreement == 0
    assert f'A tenth of `ln` leaves nothing, a tenth of `in` {percent[instance]}.' in prose
    means, variances = percent[Start(tenth, alone)], percent[Start(alone, tenth)]
    assert f'in the means alone keeps {means}, in the variances alone {variances}.' in prose
    assert kept[at(0.999)].agreement > 0.95
    assert 0.15 < kept[at(0.9)].agreement < 0.25
    assert kept[at(0.6)].agreement == 0


def test_fitting(prose: str, kept: dict) -> None:
    for ratio in (0.97, 0.99):
        plain, fitted = kept[at(ratio)].divergence, kept[at(ratio, True)].divergence
        assert f'at {ratio}' in prose.lower()
        assert f'from {plain:.3f} to {fitted:.3f}' in prose
    assert kept[at(1 / 3)].agreement == 0
    assert 0.3 < kept[at(1 / 3, True)].agreement < 0.4


@pytest.fixture(scope='module')
def records(repo: Path) -> list[Record]:
    return read_records(repo / 'docs/from_imagenet/runs.json')[0]


@pytest.fixture(scope='module')
def ap(records: list[Record]) -> dict[str, list[float]]:
    """Return box AP in percent after the last epoch, by variant, of each seed."""
    return by_variant(records, 'coco/bbox_mAP')


def by_variant(records: list[Record], metric: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for record in records:
        found.setdefault(record.variant, []).append(100 * record.metrics[metric][-1])
    return found


def test_tables_of_fine_tunings_agree_with_the_records(
    repo: Path, page: str, records: list[Record]
) -> None:
    tables = (repo / 'docs/from_imagenet/tables.md').read_text()
    for line in page[page.index('## After fine-tuning') : page.index('- **Fine-tuned')].split('\n'):
        if line.startswith('| ') and '±' in line:
            assert line in tables
    machine = read_records(repo / 'docs/from_imagenet/runs.json')[1]
    assert from_imagenet.all_tables(records, machine) == tables.strip()
    rows = [line for line in page.split('\n') if ' ± ' in line and line.startswith('|')]
    assert len(rows) == len({record.variant for record in records})


def test_fine_tuning(prose: str, records: list[Record], ap: dict) -> None:
    low, high = ap['raccoon-sn-0.90'], ap['raccoon-sn-0.99']
    assert f'0.9 ends {mean(low) - mean(high):.1f} points above 0.99' in prose
    assert min(low) > max(high)
    assert f'that trains**: {mean(high):.1f} and {mean(ap["raccoon-bn"]):.1f}.' in prose
    frozen = ap['raccoon-frozen-bn']
    assert f'still ahead**: {mean(frozen):.1f} against {mean(low):.1f}; the seeds overlap' in prose
    assert max(low) > min(frozen)
    ap50 = by_variant(records, 'coco/bbox_mAP_50')
    loses = [mean(ap50[f'raccoon-{start}']) for start in ('frozen-bn', 'sn-0.90')]
    assert f'by AP50 ({loses[0]:.1f} against {loses[1]:.1f})' in prose
    ap75 = by_variant(records, 'coco/bbox_mAP_75')
    assert mean(ap75['raccoon-frozen-bn']) > mean(ap75['raccoon-sn-0.90'])
    assert f'has {mean(ap["raccoon-gn"]):.1f} after so few steps' in prose
    assert f'{mean(ap["raccoon-sn-0.90-fitted"]):.1f} fitted, {mean(low):.1f} as conv' in prose


def test_bccd(prose: str, ap: dict) -> None:
    frozen, low, high = (mean(ap[f'bccd-{start}']) for start in ('frozen-bn', 'sn-0.90', 'sn-0.99'))
    assert f'{frozen:.1f} with frozen BN, {low:.1f} from 0.9, {high:.1f} from 0.99' in prose
    assert max(ap['bccd-sn-0.90']) > min(ap['bccd-frozen-bn'])
    assert max(ap['bccd-sn-0.99']) > min(ap['bccd-sn-0.90'])


def test_ratios(records: list[Record]) -> None:
    for record in records:
        if '-sn-' in record.variant:
            start = 0.9 if 'sn-0.90' in record.variant else 0.99
            for kind in ('mean', 'var'):
                assert record.ratios['backbone'][kind]['bn'] == pytest.approx(start, abs=5e-4)


def test_other_pages(repo: Path, kept: dict, ap: dict) -> None:
    assert BATCH_RATIO == 0.9
    pages = ' '.join((repo / 'docs/guides/from_batch_norm.md').read_text().split())
    default, fitted, near = (
        f'{100 * kept[start].agreement:.0f} %' for start in (at(0.9), at(0.9, True), at(0.99))
    )
    assert f'on {default} of new photographs, with fitted layers on {fitted}' in pages
    assert f'0.99 keeps it on {near}' in pages
    config = (repo / 'docs/guides/your_config.md').read_text()
    assert f'starts `bn` at a ratio of {BATCH_RATIO}' in config
    frozen, low, high, bn = (
        f'{mean(ap[f"raccoon-{start}"]):.1f}' for start in ('frozen-bn', 'sn-0.90', 'sn-0.99', 'bn')
    )
    said = f'{frozen} with frozen BN, {low} with SN from 0.9, {high} from 0.99, {bn} with BN'
    assert said in (repo / 'docs/results/index.md').read_text()
