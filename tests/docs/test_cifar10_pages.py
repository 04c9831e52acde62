"""The prose on CIFAR-10 and on detectors from it agrees with the committed records."""

from itertools import product
from pathlib import Path
from statistics import mean, stdev

import pytest
import yaml

from studies.experiments.records import Record, read_records


@pytest.fixture(scope='module')
def prose(repo: Path) -> str:
    """Return the page on the classifiers with its lines joined."""
    return ' '.join((repo / 'docs/results/cifar10.md').read_text().split())


@pytest.fixture(scope='module')
def records(repo: Path) -> list[Record]:
    return read_records(repo / 'docs/cifar10/runs.json')[0]


@pytest.fixture(scope='module')
def accuracy(records: list[Record]) -> dict[tuple[str, int], list[float]]:
    """Return the accuracy of each seed, by norm and batch."""
    found: dict[tuple[str, int], list[float]] = {}
    for record in records:
        key = (record.variant, record.batch)
        found.setdefault(key, []).append(record.metrics['accuracy/top1'][-1])
    return found


def test_ranks(prose: str, accuracy: dict) -> None:
    sn, bn, gn = (mean(accuracy[norm, 16]) for norm in ('sn', 'bn', 'gn'))
    assert f'{bn - sn:.1f} points above SN and {bn - gn:.1f} above GN' in prose
    assert min(accuracy['bn', 16]) > max(accuracy['sn', 16] + accuracy['gn', 16])
    small = [accuracy[norm, 2] for norm in ('sn', 'bn', 'gn')]
    means = [mean(values) for values in small]
    assert max(means) - min(means) < 0.3 < min(stdev(values) for values in small)
    losses = {norm: mean(accuracy[norm, 16]) - mean(accuracy[norm, 2]) for norm in ('bn', 'sn')}
    assert f'BN loses {losses["bn"]:.1f} points, SN {losses["sn"]:.1f} and GN' in prose


def test_ratios(prose: str, records: list[Record]) -> None:
    def ratio(kind: str, scope: str, batch: int) -> list[float]:
        found = (r for r in records if (r.variant, r.batch) == ('sn', batch))
        return [record.ratios['backbone'][kind][scope] for record in found]

    w, w_small, v, v_small = (
        mean(ratio(kind, 'bn', batch)) for kind, batch in product(('mean', 'var'), (16, 2))
    )
    assert f'is {w:.3f} over 16 images and {w_small:.3f} over 2, `w′` {v:.3f} and' in prose
    assert f'and {v_small:.3f}. `ln` gains' in prose
    for kind in ('mean', 'var'):
        assert max(ratio(kind, 'bn', 2)) < min(ratio(kind, 'bn', 16))
        assert min(ratio(kind, 'ln', 2)) > max(ratio(kind, 'ln', 16))
        assert mean(ratio(kind, 'in', 2)) == pytest.approx(mean(ratio(kind, 'in', 16)), abs=0.005)


def test_page_of_the_configs(repo: Path, accuracy: dict) -> None:
    folder = repo / 'configs/classification/cifar10'
    page = (folder / 'README.md').read_text()
    index = yaml.safe_load((folder / 'metafile.yml').read_text())
    models = {model['Name']: model for model in index['Models']}
    for (norm, batch), values in accuracy.items():
        name = f'resnet10_{norm}_{16 // batch}xb{batch}_cifar10'
        assert f'| [{name}]({name}.py) | {mean(values):.1f} | random weights |' in page
        (result,) = models[name]['Results']
        assert f'{result["Metrics"]["Top 1 Accuracy"]:.1f}' == f'{mean(values):.1f}'


def test_detectors(repo: Path) -> None:
    records, _ = read_records(repo / 'docs/from_cifar10/runs.json')
    ap = {(r.variant, r.seed): r.metrics['coco/bbox_mAP'][-1] for r in records}
    gains = sorted(ap['pretrained', seed] - ap['scratch', seed] for seed in range(3))
    assert gains[0] < 0 == gains[1] < gains[2]
    assert abs(mean(gains)) < 0.001
    page = ' '.join((repo / 'docs/results/from_cifar10.md').read_text().split())
    assert 'Each start was ahead in one seed, and in the third they are equal' in page


def test_overview(repo: Path, accuracy: dict) -> None:
    page = (repo / 'docs/results/index.md').read_text()
    for batch in (16, 2):
        said = ', '.join(f'{n.upper()} {mean(accuracy[n, batch]):.1f}' for n in ('bn', 'gn', 'sn'))
        assert f'over {batch}: {said}' in page
    records, _ = read_records(repo / 'docs/from_cifar10/runs.json')
    for variant in ('scratch', 'pretrained'):
        ap = [100 * r.metrics['coco/bbox_mAP'][-1] for r in records if r.variant == variant]
        assert f'{mean(ap):.1f}' == '2.9'
    assert 'box AP 2.9 after 200 iterations, from random weights and from a classifier' in page
