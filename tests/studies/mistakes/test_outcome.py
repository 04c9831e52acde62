"""A run ends well only in whole results or in one sentence, with nothing half-written."""

import json
from pathlib import Path

import pytest
import torch

from studies.mistakes.case import Case
from studies.mistakes.outcome import Outcome, judge, warnings_of
from studies.mistakes.running import Ran

STAMP = '11/30 01:24:33 - mmengine - WARNING - '


def end(folder: Path, ran: Ran, tool: str = 'train.py', usual: frozenset = frozenset()) -> Outcome:
    return judge(Case('box', 'it', lambda scene: None, tool), ran, folder, set(usual))


def train(folder: Path, loss: float = 1.0, weight: float = 1.0) -> Path:
    """Write what a training leaves; return its checkpoint."""
    work = folder / 'work'
    (work / '20260101_120000/vis_data').mkdir(parents=True)
    scalars = work / '20260101_120000/vis_data/scalars.json'
    scalars.write_text(json.dumps(dict(loss=loss)) + '\n')
    torch.save(dict(state_dict=dict(w=torch.tensor(weight))), work / 'epoch_1.pth')
    (work / 'last_checkpoint').write_text('epoch_1.pth')
    return work / 'epoch_1.pth'


def test_sentence(tmp_path: Path) -> None:
    said = f'error: {tmp_path}/a.jpg is no image.\n'
    outcome = end(tmp_path, Ran(2, '', f'warning: so.\n[ WARN:0@1] png\n{said}'))
    assert (outcome.ends, outcome.said) == ('sentence', ['a.jpg is no image.'])
    assert outcome.is_good


@pytest.mark.parametrize(
    ('stderr', 'ends'),
    [
        ('usage: train.py\ntrain.py: error: no.\n', 'no sentence'),
        ('error: no.\nand more\n', 'no sentence'),
        ('Traceback\nerror: no.\n', 'no sentence'),
        ('noise\nerror: no.\n', 'more than a sentence'),
    ],
)
def test_less_or_more_than_a_sentence(stderr: str, ends: str, tmp_path: Path) -> None:
    assert end(tmp_path, Ran(2, '', stderr)).ends == ends


def test_traceback(tmp_path: Path) -> None:
    outcome = end(tmp_path, Ran(1, '', 'Traceback\nValueError: x\n'))
    assert (outcome.ends, outcome.said, outcome.is_good) == ('traceback', ['ValueError: x'], False)


def test_torn_checkpoint_and_early_log_are_left_behind(tmp_path: Path) -> None:
    checkpoint = train(tmp_path)
    ran = Ran(2, '', 'error: no.\n')
    assert end(tmp_path, ran).ends == 'sentence'
    checkpoint.write_bytes(checkpoint.read_bytes()[:50])
    assert end(tmp_path, ran).ends == 'leaves work/epoch_1.pth'
    checkpoint.unlink()
    (tmp_path / 'work/20260101_120000/vis_data/scalars.json').unlink()
    (tmp_path / 'work/20260101_120000/a.log').touch()
    assert end(tmp_path, ran).ends == 'leaves work/20260101_120000/a.log'


@pytest.mark.parametrize(
    ('values', 'ends'),
    [
        ({}, 'trains'),
        (dict(loss=float('nan')), 'loss is not finite'),
        (dict(weight=float('inf')), 'weights are not finite'),
    ],
)
def test_training(values: dict[str, float], ends: str, tmp_path: Path) -> None:
    train(tmp_path, **values)
    assert end(tmp_path, Ran(0, '', '')).ends == ends


def test_training_without_a_checkpoint(tmp_path: Path) -> None:
    assert end(tmp_path, Ran(0, '', '')).ends == 'no checkpoint'
    assert end(tmp_path, Ran(0, '', ''), 'test.py').ends == 'tests'


def test_warnings_without_times_and_usual_ones(tmp_path: Path) -> None:
    train(tmp_path)
    ran = Ran(0, f'{STAMP}as always\n{STAMP}{tmp_path}/b.jpg is odd\n', 'warning: a.json is odd\n')
    assert warnings_of(ran, tmp_path) == {'as always', 'b.jpg is odd', 'a.json is odd'}
    assert end(tmp_path, ran, usual={'as always'}).said == ['a.json is odd', 'b.jpg is odd']
