"""Checkpoints and runs are read under labels that tell them apart."""

from pathlib import Path

import pytest
import torch
from torch import nn

from sn_openmmlab import SwitchNorm
from sn_openmmlab.analysis.ratio_sources import open_sources
from sn_openmmlab.errors import UsageError


def save(file: Path, control: float = 0.0, **meta: int) -> Path:
    """Save a checkpoint whose first control parameter λ differs from the others."""
    model = nn.Sequential(SwitchNorm(2))
    with torch.no_grad():
        model[0].mean_weight[0] += control
    file.parent.mkdir(parents=True, exist_ok=True)
    torch.save({'state_dict': model.state_dict(), 'meta': meta}, file)
    return file


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return the work folder of a run of two epochs."""
    for epoch in (1, 2):
        save(tmp_path / f'runs/small/epoch_{epoch}.pth', float(epoch), iter=10 * epoch)
    (tmp_path / 'runs/small/last_checkpoint').write_text(str(tmp_path / 'runs/small/epoch_2.pth'))
    return tmp_path / 'runs/small'


def test_run_has_its_newest_checkpoint_and_its_course(run: Path) -> None:
    (source,) = open_sources([run])
    assert source.label == 'small'
    e = torch.tensor(2.0).exp().item()
    assert source.layers[0].mean[0] == pytest.approx(e / (e + 2))
    assert list(source.course) == [10, 20]


def test_checkpoint_file_has_no_course(run: Path) -> None:
    (source,) = open_sources([run / 'epoch_1.pth'])
    assert (source.label, source.course) == ('epoch_1', {})


def test_labels_are_the_shortest_ends_of_the_paths_that_differ(run: Path, tmp_path: Path) -> None:
    other = save(tmp_path / 'runs/large.v2/epoch_1.pth')
    labels = [source.label for source in open_sources([run / 'epoch_1.pth', other, run])]
    assert labels == ['small/epoch_1', 'large.v2/epoch_1', 'runs/small']
    labels = [source.label for source in open_sources([run, other], ['(8, 2)', 'b'])]
    assert labels == ['(8, 2)', 'b']


@pytest.mark.parametrize(
    ('labels', 'sentence'),
    [
        (['a'], '--labels has 1 names for 2 checkpoints or runs'),
        (['a', 'a'], "'a' stands for two checkpoints or runs"),
    ],
)
def test_wrong_labels_are_one_sentence(labels: list[str], sentence: str, run: Path) -> None:
    with pytest.raises(UsageError, match=sentence):
        open_sources([run / 'epoch_1.pth', run / 'epoch_2.pth'], labels)


def test_the_same_file_twice_is_one_sentence(run: Path) -> None:
    with pytest.raises(UsageError, match='stands for two'):
        open_sources([run, run])


def test_missing_path_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r'there is no checkpoint or work folder .*absent'):
        open_sources([tmp_path / 'absent'])
    with pytest.raises(UsageError, match='holds no checkpoint'):
        open_sources([tmp_path])
    with pytest.raises(UsageError, match='holds no checkpoint'):
        open_sources([Path('/')])
    with pytest.raises(UsageError, match='cannot be read: File name too long'):
        open_sources([tmp_path / ('x' * 300)])
