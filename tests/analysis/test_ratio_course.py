"""The course of ratios, from logs written by hand and from checkpoints."""

import json
from math import log
from pathlib import Path

import pytest
import torch
from torch import nn

from sn_openmmlab import SwitchNorm
from sn_openmmlab.analysis.importance import LayerRatios
from sn_openmmlab.analysis.ratio_course import ratio_scalars, read_course
from sn_openmmlab.errors import UsageError


def save(file: Path, numbers: tuple[float, ...], **meta: int) -> None:
    """Save a checkpoint whose ratios are as the numbers."""
    model = nn.ModuleDict({'neck': nn.Sequential(SwitchNorm(2, scopes=('in', 'ln')))})
    with torch.no_grad():
        model['neck'][0].mean_weight.copy_(torch.tensor([log(number) for number in numbers]))
    torch.save({'state_dict': model.state_dict(), 'meta': meta}, file)


def write_log(run: Path, *lines: dict) -> None:
    """Write what a run logged."""
    (run / 'vis_data').mkdir(parents=True)
    text = '\n'.join(json.dumps(line) for line in lines)
    (run / 'vis_data/scalars.json').write_text(text + '\n')


def averages(ratio: float) -> dict[str, float]:
    return {'importance_ratio/all/mean/in': ratio, 'importance_ratio/neck/var/bn': ratio}


def read(work_dir: Path) -> dict[int, float]:
    return {step: ratios['all']['mean']['in'] for step, ratios in read_course(work_dir).items()}


def test_scalars_are_the_averages_and_on_request_the_layers() -> None:
    rows = [
        LayerRatios('neck.a', ('in', 'bn'), (0.25, 0.75), (1.0, 0.0)),
        LayerRatios('neck.b (group 2)', ('in', 'bn'), (0.75, 0.25), (0.0, 1.0)),
    ]
    expected = {f'importance_ratio/{part}/{kind}/{scope}': 0.5 for part in ('neck', 'all')
                for kind in ('mean', 'var') for scope in ('in', 'bn')}  # fmt: skip
    assert ratio_scalars(rows) == expected
    layers = {
        'importance_ratio_of_layer/neck.a/mean/in': 0.25,
        'importance_ratio_of_layer/neck.a/mean/bn': 0.75,
        'importance_ratio_of_layer/neck.a/var/in': 1.0,
        'importance_ratio_of_layer/neck.a/var/bn': 0.0,
        'importance_ratio_of_layer/neck.b.group2/mean/in': 0.75,
        'importance_ratio_of_layer/neck.b.group2/mean/bn': 0.25,
        'importance_ratio_of_layer/neck.b.group2/var/in': 0.0,
        'importance_ratio_of_layer/neck.b.group2/var/bn': 1.0,
    }
    assert ratio_scalars(rows, layers=True) == expected | layers


def test_logged_course_of_a_run_and_its_continuation(tmp_path: Path) -> None:
    write_log(
        tmp_path / '20260101_000000',
        {**averages(0.5), 'step': 0},
        {'loss': 1.0, 'step': 50},
        {**averages(0.4), 'importance_ratio_of_layer/neck.a/mean/in': 0.1, 'step': 50},
        {**averages(0.3), 'step': 100},
    )
    write_log(
        tmp_path / '20260102_000000', {**averages(0.45), 'step': 50}, {**averages(0.2), 'step': 75}
    )
    # A test that was run in the same folder.
    write_log(tmp_path / '20260103_000000', {'coco/bbox_mAP': 0.5, 'step': 0})
    save(tmp_path / 'epoch_1.pth', (1, 1), iter=9)

    assert read(tmp_path) == {0: 0.5, 50: 0.45, 75: 0.2}
    assert read_course(tmp_path)[75] == {'all': {'mean': {'in': 0.2}}, 'neck': {'var': {'bn': 0.2}}}


def test_other_scalars_under_the_same_name_are_left_out(tmp_path: Path) -> None:
    others = {'importance_ratio/mine': 1.0, 'importance_ratio/all/mean/pn': 1.0}
    write_log(tmp_path / 'run', {**averages(0.5), **others, 'step': 0}, {**others, 'step': 1})
    assert read(tmp_path) == {0: 0.5}


def test_course_without_a_log_is_that_of_the_checkpoints(tmp_path: Path) -> None:
    save(tmp_path / 'epoch_2.pth', (3, 1), epoch=2, iter=20)
    save(tmp_path / 'epoch_10.pth', (1, 3), epoch=10, iter=100)
    save(tmp_path / 'best_accuracy_epoch_1.pth', (1, 9), epoch=1, iter=10)
    save(tmp_path / 'iter_50.pth', (1, 1), iter=50)
    save(tmp_path / 'epoch_11.pth', (1, 1))
    assert read(tmp_path) == pytest.approx({20: 0.75, 50: 0.5, 100: 0.25})
    assert list(read_course(tmp_path)) == [20, 50, 100]


def test_folder_without_either_has_no_course(tmp_path: Path) -> None:
    assert read_course(tmp_path) == {}


def test_checkpoint_without_sn_is_one_sentence(tmp_path: Path) -> None:
    weights = nn.BatchNorm2d(2).state_dict()
    torch.save({'state_dict': weights, 'meta': {'iter': 5}}, tmp_path / 'iter_5.pth')
    with pytest.raises(UsageError, match=r'iter_5.pth: it has no SN layer'):
        read_course(tmp_path)
