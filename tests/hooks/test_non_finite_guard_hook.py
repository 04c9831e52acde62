"""The guard stops at the first number that is not finite, or leaves out its step, and no more."""

import copy
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
import torch
from mmengine.hooks import EMAHook, Hook
from mmengine.runner import Runner

from sn_openmmlab.errors import UsageError
from sn_openmmlab.hooks.non_finite_guard_hook import NonFiniteGuardHook
from tests.faulty_run import MARK, faulty_config, register

SKIP = [dict(type='NonFiniteGuardHook', max_skips=2)]
EMA = dict(type='EMAHook', momentum=0.5, update_buffers=True)
DATA = 'train_dataloader.dataset'


class Course(Hook):
    """Keep what each iteration leaves behind."""

    priority = 'LOWEST'

    def __init__(self) -> None:
        self.states: list[dict[str, torch.Tensor]] = []

    def after_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        self.states.append(copy.deepcopy(runner.model.state_dict()))


@pytest.fixture
def train(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Runner]:
    """Return a function that trains the faulty model, of four steps, in the folder `run`."""
    register(monkeypatch)

    def run(
        chosen: tuple = (), folder: str = 'run', hooks: tuple[Hook, ...] = (), **changes: Any
    ) -> Runner:
        data = dict(type='FaultyData', chosen=chosen)
        config = faulty_config(tmp_path / folder, **{DATA: data, **changes})
        runner = Runner.from_cfg(config)
        for hook in (*hooks, Course()):
            runner.register_hook(hook)
        runner.train()
        return runner

    return run


@pytest.fixture
def stop(train: Callable) -> Callable[..., str]:
    """Return a function that trains until the guard stops, and returns its sentence."""

    def run(*args: Any, **changes: Any) -> str:
        with pytest.raises(UsageError) as caught:
            train(*args, **changes)
        assert '\n' not in str(caught.value)
        return str(caught.value)

    return run


def course(runner: Runner) -> list[dict[str, torch.Tensor]]:
    return next(hook.states for hook in runner.hooks if isinstance(hook, Course))


def assert_equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> None:
    assert first.keys() == second.keys()
    assert [name for name in first if not torch.equal(first[name], second[name])] == []


@pytest.mark.parametrize(
    ('fault', 'sign', 'place', 'images'),
    [
        ('layer', 'the loss', 'power (Power) is the first layer whose output is not',
         'the image images/5.jpg'),
        ('loss', 'the loss', 'of all layers are finite, but loss_log is not',
         'the images images/4.jpg, images/5.jpg'),
        ('statistic', 'a running statistic', 'of all layers are finite, but sn.running_var is not',
         'the images images/4.jpg, images/5.jpg'),
        ('gradient', 'a gradient', 'the gradient of head.weight is the first that is not',
         'the images images/4.jpg, images/5.jpg'),
    ],
)  # fmt: skip
def test_run_stops_with_iteration_place_images_and_checkpoint(
    fault: str, sign: str, place: str, images: str, stop: Callable, tmp_path: Path, log: Any
) -> None:
    said = stop((5,), 'a run', **{'model.fault': fault})
    assert said.startswith('the training stops at iteration 3, since ')
    assert sign in said.split(' not finite: ')[0]
    assert place in said and f', on {images};' in said
    checkpoint = tmp_path / 'a run/iter_2.pth'
    assert f'the last good checkpoint is {checkpoint}:' in said
    assert said.endswith(f'go on with --resume {quote(str(checkpoint))}.')
    # The log of the run has it too.
    (file,) = checkpoint.parent.glob('*/*.log')
    assert said in file.read_text()
    # It stopped before the weights changed, and before it was saved.
    assert not checkpoint.with_name('iter_3.pth').exists()


def test_image_that_is_not_finite_is_named(stop: Callable) -> None:
    said = stop(**{DATA: dict(type='FaultyData', chosen=[2], kind=math.nan)})
    assert 'the input of the model is not finite, on the image images/2.jpg;' in said


def test_weights_that_are_not_finite_are_named(stop: Callable, tmp_path: Path) -> None:
    class Spoil(Hook):
        def before_train(self, runner: Runner) -> None:
            with torch.no_grad():
                runner.model.head.bias.fill_(math.inf)

    said = stop(hooks=(Spoil(),))
    assert 'head (Conv2d) is the first layer' in said
    assert 'and its own bias is not finite either' in said
    assert f'{tmp_path / "run"} has no good checkpoint' in said


def test_layer_of_one_draw_is_found_again(stop: Callable) -> None:
    class InfiniteIfDrawn(torch.nn.Dropout):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x / (torch.rand(()) > 0.4)

    class Change(Hook):
        def before_train(self, runner: Runner) -> None:
            runner.model.drop = InfiniteIfDrawn()

    said = stop(hooks=(Change(),))
    assert 'drop (InfiniteIfDrawn) is the first layer' in said


@pytest.mark.parametrize('changes', [{}, {'optim_wrapper.clip_grad': dict(max_norm=0.1)}])
def test_finite_training_is_the_same_bit_for_bit(changes: dict, train: Callable) -> None:
    hooked = train(custom_hooks=[EMA, *SKIP], **changes)
    plain = train(custom_hooks=[EMA], folder='plain', **changes)
    for first, second in zip(course(hooked), course(plain), strict=True):
        assert_equal(first, second)
    averages = [
        next(h.ema_model.state_dict() for h in runner.hooks if isinstance(h, EMAHook))
        for runner in (hooked, plain)
    ]
    assert_equal(*averages)
    # The wrapper has its own methods again.
    assert not {'backward', 'step'} & set(vars(hooked.optim_wrapper))


@pytest.mark.parametrize('fault', ['layer', 'loss', 'statistic', 'gradient'])
@pytest.mark.parametrize('clip', [None, dict(max_norm=0.1)])
def test_skipped_step_is_one_that_never_was(fault: str, clip: dict | None, train: Callable) -> None:
    settings = {'model.fault': fault, 'optim_wrapper.clip_grad': clip}
    skipping = train((5,), custom_hooks=[EMA, *SKIP], **settings)
    states = course(skipping)
    assert_equal(states[2], states[1])
    assert not torch.equal(states[3]['head.weight'], states[2]['head.weight'])
    assert all(value.isfinite().all() for value in states[3].values())
    assert skipping.message_hub.get_info('non_finite_skips') == 1
    # The averages are those of the weights after each iteration.
    ema = next(h.ema_model.module for h in skipping.hooks if isinstance(h, EMAHook)).state_dict()
    expected = states[0]['head.weight']
    for state in states[1:]:
        expected = expected.lerp(state['head.weight'], 0.5)
    torch.testing.assert_close(ema['head.weight'], expected)
    assert all(value.isfinite().all() for value in ema.values())


def test_training_with_a_skipped_step_is_that_without_its_images(train: Callable) -> None:
    # Without dropout, no random number depends on the number of steps.
    class Certain(Hook):
        def before_train(self, runner: Runner) -> None:
            runner.model.drop = torch.nn.Identity()

    skipping = train((5,), hooks=(Certain(),), custom_hooks=SKIP, **{'model.fault': 'gradient'})
    data = dict(type='FaultyData', left_out=[4, 5])
    without = train(
        hooks=(Certain(),),
        custom_hooks=[],
        folder='without',
        **{DATA: data, 'model.fault': 'gradient'},
    )
    assert_equal(course(skipping)[-1], course(without)[-1])
    momenta = [
        [state['momentum_buffer'] for state in runner.optim_wrapper.optimizer.state.values()]
        for runner in (skipping, without)
    ]
    for first, second in zip(*momenta, strict=True):
        assert torch.equal(first, second)


def test_skips_are_bounded_and_counted_over_a_resume(
    stop: Callable, train: Callable, tmp_path: Path
) -> None:
    one = [dict(type='NonFiniteGuardHook', max_skips=1)]
    said = stop((3, 6), custom_hooks=one)
    assert 'stops at iteration 4 after 1 left out, since' in said
    train((3,), custom_hooks=one, folder='first')
    resumed = {
        'resume': True,
        'load_from': str(tmp_path / 'first/iter_4.pth'),
        'train_cfg.max_epochs': 2,
    }
    said = stop((3,), custom_hooks=one, folder='second', **resumed)
    assert 'stops at iteration 6 after 1 left out, since' in said


def test_skip_is_a_warning_with_the_place(train: Callable, tmp_path: Path) -> None:
    train((5,), custom_hooks=SKIP)
    (file,) = (tmp_path / 'run').glob('*/*.log')
    (line,) = [line for line in file.read_text().splitlines() if 'is left out' in line]
    assert 'WARNING' in line
    assert 'The step of iteration 3 is left out (1 of at most 2): the loss' in line
    assert 'power (Power) is the first layer whose output is not, on the image images/5.jpg' in line


@pytest.mark.parametrize('chosen', [(5,), (7,)], ids=['first of the sum', 'last of the sum'])
def test_accumulated_step_is_left_out_whole(chosen: tuple, train: Callable) -> None:
    settings = {'model.fault': 'gradient', 'optim_wrapper.accumulative_counts': 2}
    states = course(train(chosen, custom_hooks=SKIP, **settings))
    for name in ('conv.weight', 'head.weight', 'sn.mean_weight'):
        assert torch.equal(states[3][name], states[1][name])
    assert not torch.equal(states[1]['head.weight'], states[0]['head.weight'])
    # Only the statistics of the spoiled batch are taken back.
    assert states[3]['sn.num_batches_tracked'] == 3


def test_frozen_parts_are_no_obstacle(stop: Callable) -> None:
    said = stop((5,), **{'model.fault': 'gradient', 'model.frozen': True})
    assert 'the gradient of head.weight is the first' in said


def test_it_works_beside_the_hook_that_copies_the_model(train: Callable) -> None:
    hooks = [dict(type='BatchAverageHook', num_batches=1), *SKIP]
    runner = train((5,), custom_hooks=hooks, **{'model.fault': 'gradient'})
    assert torch.equal(course(runner)[2]['head.weight'], course(runner)[1]['head.weight'])
    assert not runner.model._forward_pre_hooks


@pytest.mark.slow
def test_it_works_with_torch_compile(train: Callable) -> None:
    runner = train((5,), custom_hooks=SKIP, compile=dict(backend='eager'))
    assert runner.message_hub.get_info('non_finite_skips') == 1
    assert_equal(course(runner)[2], course(runner)[1])
    assert not torch.equal(course(runner)[3]['head.weight'], course(runner)[2]['head.weight'])


@pytest.fixture
def amp(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict]:
    """Return a function (scale) -> an AmpOptimWrapper, which takes the CPU for a GPU."""
    module = 'mmengine.optim.optimizer.amp_optimizer_wrapper'
    monkeypatch.setattr(f'{module}.is_cuda_available', lambda: True)
    monkeypatch.setattr(f'{module}.GradScaler', partial(torch.amp.GradScaler, 'cpu'))

    def wrapper(**scale: Any) -> dict:
        optimizer = dict(type='SGD', lr=0.1)
        kind = dict(type='AmpOptimWrapper', dtype='bfloat16', optimizer=optimizer)
        return dict(optim_wrapper=dict(kind, loss_scale=scale))

    return wrapper


def test_scaled_gradients_are_left_to_the_scaler(amp: Callable, train: Callable) -> None:
    runner = train((3, 5), **{**amp(init_scale=16.0), 'model.fault': 'gradient'})
    states = course(runner)
    assert torch.equal(states[1]['head.weight'], states[0]['head.weight'])
    assert not torch.equal(states[3]['head.weight'], states[2]['head.weight'])
    assert runner.optim_wrapper.loss_scaler.get_scale() == 4.0


def test_gradients_are_looked_at_once_the_scale_is_down(amp: Callable, stop: Callable) -> None:
    said = stop((1, 3, 5), **{**amp(init_scale=4.0), 'model.fault': 'gradient'})
    assert 'stops at iteration 3, since a gradient is not finite' in said
    said = stop((3,), folder='off', **{**amp(enabled=False), 'model.fault': 'gradient'})
    assert 'stops at iteration 2, since a gradient is not finite' in said


@pytest.mark.parametrize('fault', ['layer', 'loss'])
def test_loss_is_looked_at_with_a_scale_too(fault: str, amp: Callable, stop: Callable) -> None:
    said = stop((3,), **{**amp(init_scale=65536.0), 'model.fault': fault})
    assert 'stops at iteration 2, since the loss' in said


def test_skip_leaves_the_scaler_alone(amp: Callable, train: Callable) -> None:
    runner = train((5,), custom_hooks=SKIP, **{**amp(init_scale=16.0), 'model.fault': 'loss'})
    states = course(runner)
    assert_equal(states[2], states[1])
    assert not torch.equal(states[3]['head.weight'], states[2]['head.weight'])
    assert runner.optim_wrapper.loss_scaler.get_scale() == 16.0


def test_marks_are_finite_themselves(train: Callable) -> None:
    assert math.isfinite(MARK)
    train((5,), **{'model.fault': 'none'})


def test_huge_gradients_are_finite(train: Callable) -> None:
    # Their squares are not.
    class Enlarge(Hook):
        def before_train(self, runner: Runner) -> None:
            runner.model.head.weight.register_hook(lambda grad: grad * 0 + 1e30)

    runner = train(hooks=(Enlarge(),), **{'optim_wrapper.optimizer.lr': 1e-35})
    assert len(course(runner)) == 4


def test_other_kinds_of_wrappers_are_refused(train: Callable) -> None:
    runner = train()
    runner.optim_wrapper = object()
    with pytest.raises(UsageError, match='does not know the optimizer wrapper object'):
        NonFiniteGuardHook().before_train(runner)


@pytest.mark.parametrize(
    ('given', 'error'), [(-1, ValueError), (1.5, TypeError), (True, TypeError), ('2', TypeError)]
)
def test_wrong_arguments_are_errors(given: object, error: type[Exception]) -> None:
    with pytest.raises(error, match='max_skips must be'):
        NonFiniteGuardHook(given)
