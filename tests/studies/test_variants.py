"""The command variants on networks that are not trained."""

import sys
from pathlib import Path

import pytest
import torch
from matplotlib.image import imread

pytest.importorskip('mmdet')
pytest.importorskip('sklearn')
pytest.importorskip('skimage')
from examples import lstm_with_sn, video_with_sn
from sn_openmmlab import inflate_module
from studies import variants
from studies.experiments.records import read_records


@pytest.fixture(autouse=True)
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the trainings; the accuracies then are numbers of the test."""

    def train(norm: str, seed: int) -> tuple:
        return lstm_with_sn.RowReader(8, 10, lstm_with_sn.NORMS[norm]), [0.25, 0.5 + seed / 4]

    def compare(norm: str, seed: int) -> tuple:
        network = video_with_sn.Classifier(4, video_with_sn.NORMS[norm])
        return {'digits': 50.0, 'directions': 60.0 + 10 * seed}, inflate_module(network)

    def move(network: video_with_sn.Classifier, *_: object) -> None:
        with torch.no_grad():
            for name, control in network.named_parameters():
                if control.dim() == 2 and name.endswith('mean_weight'):
                    # Ratios of 1/2, 1/4, 1/4 in the second group, as the others start at 1/3.
                    control[1, 0] += torch.log(torch.tensor(2.0))

    monkeypatch.setattr(lstm_with_sn, 'train', train)
    monkeypatch.setattr(video_with_sn, 'compare', compare)
    monkeypatch.setattr(video_with_sn, 'train', move)
    monkeypatch.setattr(video_with_sn, 'IMAGES', 8)
    monkeypatch.setattr(video_with_sn, 'TEST', 8)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, 'argv', ['variants.py', *map(str, arguments)])
    variants.main()


def test_it_writes_records_tables_and_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(monkeypatch, '--out', tmp_path, '--seeds', 2)
    names = {'groups.json', 'lstm.json', 'video.json', 'tables.md', 'groups.png', 'lstm.png'}
    assert {file.name for file in tmp_path.iterdir()} == names
    records, machine = read_records(tmp_path / 'lstm.json')
    assert [(r.variant, r.seed) for r in records] == [
        (norm, seed) for seed in range(2) for norm in ('LN', 'GN', 'SN')
    ]
    assert machine['torch'] == torch.__version__
    page = (tmp_path / 'tables.md').read_text()
    assert '| GN | 62.5 ± 17.7 | 50.0, 75.0 |' in page
    assert '| SN | 0.500 ± 0.000 | 0.500 ± 0.000 | 0.500 ± 0.000 | 0.500 ± 0.000 |' in page
    assert '| BN | 50.0 ± 0.0 | 65.0 ± 7.1 |' in page
    # 1/2 against 1/3.
    assert '| layer1.0.sn1 | 0.167 ± 0.000 | 0.000 ± 0.000 |' in page
    assert all(imread(tmp_path / f'{name}.png').std() > 0 for name in ('groups', 'lstm'))


def test_a_part_can_be_trained_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, '--out', tmp_path, '--seeds', 2)
    before = (tmp_path / 'video.json').read_text()
    run(monkeypatch, '--out', tmp_path, '--seeds', 3, '--parts', 'lstm')
    assert len(read_records(tmp_path / 'lstm.json')[0]) == 9
    assert (tmp_path / 'video.json').read_text() == before
