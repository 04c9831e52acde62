"""The hook logs the ratios of a training where mmengine logs, and changes nothing in it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.runner import Runner
from torch import nn

from sn_openmmlab.analysis.curves import read_curves
from sn_openmmlab.analysis.ratio_course import read_course
from sn_openmmlab.errors import UsageError
from sn_openmmlab.hooks import importance_ratios_hook
from sn_openmmlab.hooks.importance_ratios_hook import ImportanceRatiosHook
from tests.small_run import register, small_config

HOOK = dict(type='ImportanceRatiosHook', interval=2)
EMA = dict(type='EMAHook', momentum=0.5)
EACH = dict(logger=dict(type='LoggerHook', interval=1))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Runner]:
    """Return a function that trains the small model, of four steps, in the folder `run`."""
    register(monkeypatch)

    def train(*hooks: dict, folder: str = 'run', **changes: Any) -> Runner:
        config = small_config(tmp_path / folder, custom_hooks=list(hooks), **changes)
        runner = Runner.from_cfg(config)
        runner.train()
        return runner

    return train


def lines(folder: Path) -> list[dict[str, float]]:
    """Return the logged scalars of the newest run in a folder."""
    file = max(folder.glob('*/vis_data/scalars.json'))
    return [json.loads(line) for line in file.read_text().splitlines()]


def softmax(control: torch.Tensor) -> list[float]:
    return (control.detach().exp() / control.detach().exp().sum()).tolist()


def test_ratios_are_logged_at_the_start_at_each_interval_and_at_the_end(
    run: Callable, tmp_path: Path
) -> None:
    runner = run(dict(HOOK, interval=3))
    logged = [line for line in lines(tmp_path / 'run') if any('ratio' in name for name in line)]
    assert [line['step'] for line in logged] == [0, 3, 4]
    names = {f'importance_ratio/{part}/{kind}/{scope}' for part in ('sn', 'all')
             for kind in ('mean', 'var') for scope in ('in', 'bn')}  # fmt: skip
    assert all(set(line) == {*names, 'step'} for line in logged)
    # The ratios start equal, and are the softmax of λ at the end (Eq. 5).
    assert {logged[0][name] for name in names} == {0.5}
    for kind in ('mean', 'var'):
        expected = softmax(getattr(runner.model.sn, f'{kind}_weight'))
        assert expected != [0.5, 0.5]
        for scope, ratio in zip(('in', 'bn'), expected, strict=True):
            for part in ('sn', 'all'):
                name = f'importance_ratio/{part}/{kind}/{scope}'
                assert logged[-1][name] == pytest.approx(ratio, abs=1e-6)


@pytest.mark.parametrize('others', [[], [EMA]], ids=['alone', 'EMA'])
def test_training_is_the_same_bit_for_bit(others: list, run: Callable, tmp_path: Path) -> None:
    states = []
    for folder, hooks in (('without', others), ('with', [*others, dict(HOOK, layers=True)])):
        runner = run(*hooks, folder=folder)
        saved = torch.load(tmp_path / folder / 'epoch_2.pth', weights_only=True)
        states.append([runner.model.state_dict(), saved['state_dict'], dict(drawn=torch.rand(3))])
    for without, hooked in zip(*states, strict=True):
        assert without.keys() == hooked.keys()
        assert all(torch.equal(without[name], hooked[name]) for name in without)


def test_curves_of_the_report_have_no_ratios(run: Callable, tmp_path: Path) -> None:
    run(HOOK, default_hooks=EACH)
    files = list((tmp_path / 'run').glob('*/vis_data/scalars.json'))
    losses, metrics = read_curves(files)
    assert (set(losses), set(metrics)) == ({'loss'}, {'score'})
    assert [step for step, _ in losses['loss']] == [1, 2, 3, 4]


def test_layers_are_logged_on_request_also_with_groups(run: Callable, tmp_path: Path) -> None:
    runner = run()
    runner.model.sn.__init__(4, scopes=('in', 'bn'), num_ratio_groups=2)
    with torch.no_grad():
        runner.model.sn.mean_weight.copy_(torch.tensor([[3.0, 1.0], [1.0, 1.0]]).log())
    ImportanceRatiosHook(layers=True).before_train(runner)
    line = lines(tmp_path / 'run')[-1]
    start = 'importance_ratio_of_layer/sn.group'
    assert line[f'{start}1/mean/in'] == pytest.approx(0.75)
    assert line[f'{start}2/mean/in'] == pytest.approx(0.5)
    assert line['importance_ratio/sn/mean/in'] == pytest.approx(0.625)


def test_sparse_layer_has_ratios_of_one_and_zero(run: Callable, tmp_path: Path) -> None:
    run(HOOK, dict(type='SparsifyHook', begin=1))
    course = read_course(tmp_path / 'run')
    assert list(course) == [0, 2, 4]
    assert course[0]['all']['mean'] == {'in': 0.5, 'bn': 0.5}
    assert sorted(course[4]['all']['mean'].values()) == [0, 1]


def test_resumed_training_goes_on_with_the_course(run: Callable, tmp_path: Path) -> None:
    run(HOOK, **{'train_cfg.max_epochs': 1})
    runner = run(HOOK, resume=True, load_from=str(tmp_path / 'run/epoch_1.pth'))
    course = read_course(tmp_path / 'run')
    assert list(course) == [0, 2, 4]
    expected = softmax(runner.model.sn.mean_weight)
    assert list(course[4]['all']['mean'].values()) == pytest.approx(expected, abs=1e-6)


def test_other_processes_log_nothing(
    run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importance_ratios_hook, 'is_main_process', lambda: False)
    run(HOOK)
    assert not any('importance_ratio' in str(line) for line in lines(tmp_path / 'run'))


def test_tensorboard_has_the_ratios(run: Callable, tmp_path: Path) -> None:
    pytest.importorskip('tensorboard')
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    backends = [dict(type='LocalVisBackend'), dict(type='TensorboardVisBackend')]
    runner = run(HOOK, visualizer=dict(type='Visualizer', vis_backends=backends))
    (file,) = (tmp_path / 'run').glob('*/vis_data/events.out.tfevents.*')
    events = EventAccumulator(str(file))
    events.Reload()
    found = events.Scalars('importance_ratio/all/mean/bn')
    assert [event.step for event in found] == [0, 2, 4]
    assert found[0].value == 0.5
    assert found[-1].value == pytest.approx(softmax(runner.model.sn.mean_weight)[1], abs=1e-6)
    assert 'loss' in events.Tags()['scalars']


def test_model_without_sn_is_one_sentence(run: Callable) -> None:
    runner = run()
    runner.model.sn = nn.Identity()
    with pytest.raises(UsageError, match='ImportanceRatiosHook finds no SN in the model: remove'):
        ImportanceRatiosHook().before_train(runner)


@pytest.mark.parametrize(
    ('arguments', 'error'),
    [
        (dict(interval=0), ValueError),
        (dict(interval=1.5), TypeError),
        (dict(layers='no'), TypeError),
    ],
)
def test_wrong_arguments_are_errors(arguments: dict, error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(arguments))):
        ImportanceRatiosHook(**arguments)
