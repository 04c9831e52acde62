"""tools/plot_importance.py draws from checkpoints alone, or says in one sentence why not."""

import json
import runpy
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torchvision
from matplotlib.image import imread
from torch import nn

from sn_openmmlab import SwitchNorm


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return the work folder of a run of a ResNet-18 whose λ are random."""
    model = torchvision.models.resnet18(norm_layer=SwitchNorm)
    for layer in model.modules():
        if isinstance(layer, SwitchNorm):
            nn.init.normal_(layer.mean_weight)
    (tmp_path / 'run').mkdir()
    # A config that no toolbox could build.
    meta = dict(cfg="raise SystemExit('the config was run')", epoch=1, iter=7)
    torch.save(dict(state_dict=model.state_dict(), meta=meta), tmp_path / 'run/epoch_1.pth')
    (tmp_path / 'run/last_checkpoint').write_text('epoch_1.pth')
    return tmp_path / 'run'


def test_run_and_checkpoint_give_the_table_and_the_figures(
    repo: Path,
    run: Path,
    process_state: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
    tmp_path: Path,
) -> None:
    alone = shutil.copy(run / 'epoch_1.pth', tmp_path / 'alone.pth')
    arguments = [run, alone, '--out', tmp_path / 'out', '--labels', 'the run', 'alone']
    monkeypatch.setattr(sys, 'argv', ['plot_importance.py', *map(str, arguments)])
    runpy.run_path(str(repo / 'tools/plot_importance.py'), run_name='__main__')
    files = ('importance_ratios.csv', 'importance_ratios.json', 'parts.png', 'layers.png')
    written = [str(tmp_path / 'out' / name) for name in (*files, 'networks.png')]
    assert capsys.readouterr().out.splitlines() == written
    assert imread(tmp_path / 'out/layers.png').shape[1] <= 1320

    table = json.loads((tmp_path / 'out/importance_ratios.json').read_text())
    of_run, of_file = ([row for row in table if row['run'] == x] for x in ('the run', 'alone'))
    assert [dict(row, run='') for row in of_run] == [dict(row, run='') for row in of_file]
    # A line for each of three scopes.
    kinds = [row['conv'] for row in of_run[::3]]
    assert {x: kinds.count(x) for x in kinds} == {'7x7': 1, '3x3': 16, 'shortcut': 3}
    # The ratios are the softmax of λ (Eq. 5).
    weights = torch.load(alone, weights_only=True)['state_dict']
    for row in of_run[:3]:
        ratios = torch.softmax(weights[f'{row["layer"]}.mean_weight'], -1)
        place = ('in', 'ln', 'bn').index(row['scope'])
        assert row['mean_ratio'] == pytest.approx(ratios[place].item(), abs=1e-6)


@pytest.mark.parametrize(
    ('sources', 'sentence'),
    [
        (['absent.pth'], 'there is no checkpoint or work folder absent.pth'),
        (['broken.pth'], 'broken.pth is not a checkpoint, or is damaged or cut short'),
        (['bn.pth'], 'bn.pth: it has no SN layer'),
        (['.'], 'last_checkpoint names none of the checkpoints there'),
        (['bn.pth', '--labels', 'a', 'b'], '--labels has 2 names for 1 checkpoints'),
    ],
)
def test_mistake_is_one_sentence(
    sources: list[str], sentence: str, fail: Callable, tmp_path: Path
) -> None:
    (tmp_path / 'broken.pth').write_bytes(b'PK\x03\x04')
    torch.save(nn.BatchNorm2d(2).state_dict(), tmp_path / 'bn.pth')
    assert sentence in fail('plot_importance.py', *sources, '--out', 'out')
    assert not (tmp_path / 'out').exists()


def test_file_as_output_is_one_sentence(fail: Callable, tmp_path: Path) -> None:
    (tmp_path / 'out').touch()
    assert 'out is a file, not a folder' in fail('plot_importance.py', 'a.pth', '--out', 'out')
