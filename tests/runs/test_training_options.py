"""What a config can add to a training: on a small detector and a small segmenter with SN."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch import Tensor

from sn_openmmlab import SwitchNorm
from sn_openmmlab.runs.runner import build_runner
from tests import cpu_amp  # noqa: F401

LR = 0.01
# At the default scale of 65536 a gradient of 1 overflows in float16, and the step is left out.
SCALE = 1024.0
CPU_AMP = dict(type='AmpOptimWrapper', loss_scale=dict(init_scale=SCALE))
Tensors = dict[str, Tensor]
NARROW = {'model.backbone.stem_channels': 8, 'model.backbone.base_channels': 8}
CHANNELS = {
    'detection': {**NARROW, 'model.neck.in_channels': [8, 16, 32, 64]},
    'segmentation': {**NARROW, 'model.decode_head.in_channels': 64},
}


@dataclass
class Course:
    """What a training went through, step by step."""

    runner: Runner
    losses: list[float]
    # Of the weights before each step of the optimizer, and after each iteration.
    gradients: list[Tensors] = field(default_factory=list)
    states: list[Tensors] = field(default_factory=list)


class Witness(Hook):
    """Keep gradients and states, and change the model before it trains."""

    priority = 'VERY_HIGH'

    def __init__(self, prepare: Callable[[torch.nn.Module], Any]) -> None:
        self.prepare = prepare
        self.gradients: list[Tensors] = []
        self.states: list[Tensors] = []

    def before_train(self, runner: Runner) -> None:
        self.prepare(runner.model)
        runner.optim_wrapper.optimizer.register_step_pre_hook(partial(self._keep, runner.model))

    def _keep(self, model: torch.nn.Module, *_: Any) -> None:
        named = model.named_parameters()
        self.gradients.append({n: p.grad.clone() for n, p in named if p.grad is not None})

    def after_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        self.states.append({n: x.clone() for n, x in runner.model.state_dict().items()})


@pytest.fixture(params=['detection', 'segmentation'])
def train(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Course]:
    """Return a function that trains for two iterations with changes of the tiny config."""
    monkeypatch.setattr(Runner, 'save_checkpoint', lambda *args, **kwargs: None)
    monkeypatch.setattr('mmengine.runner.runner.collect_env', dict)
    file = request.getfixturevalue(f'{request.param}_config')
    plain = dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=LR))
    number = iter(range(9))

    def run(prepare: Callable = lambda model: None, steps: int = 2, **changes: Any) -> Course:
        config = Config.fromfile(file)
        config.work_dir = str(tmp_path)
        # Which also names the visualizer.
        config.experiment_name = f'{request.param} {tmp_path.name} {next(number)}'
        config.visualizer = None
        config.train_cfg = dict(type='IterBasedTrainLoop', max_iters=steps)
        config.train_dataloader.sampler = dict(type='InfiniteSampler')
        config.optim_wrapper, config.param_scheduler = dict(plain), None
        for name in ('val_dataloader', 'val_evaluator', 'val_cfg'):
            config[name] = None
        config.merge_from_dict({**CHANNELS[request.param], **changes})
        # It seeds every iteration, so that what else an option draws changes nothing.
        runner = build_runner(config)
        witness = Witness(prepare)
        runner.register_hook(witness)
        runner.train()
        losses = runner.message_hub.log_scalars['train/loss'].data[0].tolist()
        return Course(runner, losses, witness.gradients, witness.states)

    return run


@pytest.fixture
def plain(request: pytest.FixtureRequest, train: Callable, kept: dict[str, Course]) -> Course:
    """Return the course of a training without any option, which runs once for each toolbox."""
    toolbox = request.node.callspec.params['train']
    if toolbox not in kept:
        kept[toolbox] = train()
    return kept[toolbox]


@pytest.fixture(scope='module')
def kept() -> dict[str, Course]:
    """Return a place for the courses without options."""
    return {}


def assert_equal(found: Tensors, expected: Tensors) -> None:
    assert found.keys() == expected.keys()
    assert [name for name in expected if not torch.equal(found[name], expected[name])] == []


def assert_all_close(found: Tensors, expected: Tensors, **tolerance: float) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, **tolerance, msg=partial(_named, name))


def _named(name: str, message: str) -> str:
    return f'{name}: {message}'


def statistics(course: Course) -> Tensors:
    """Return the running statistics after the first batch, of parts that are before any RoI."""
    state = course.states[0].items()
    return {name: x for name, x in state if 'running' in name and 'roi_head' not in name}


def norm_of(tensors: Tensors) -> Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors.values()]).norm()


def assert_close_courses(found: Course, expected: Course) -> None:
    # Rounding may change which proposals a detector takes.
    torch.testing.assert_close(found.losses[0], expected.losses[0], rtol=1e-2, atol=0)
    assert_all_close(statistics(found), statistics(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    'option',
    [
        {'model.backbone.with_cp': True},
        {'activation_checkpointing': ['backbone.layer1', 'backbone.layer4']},
    ],
    ids=['with_cp', 'activation_checkpointing'],
)
def test_activation_checkpointing_changes_nothing(
    option: dict, plain: Course, train: Callable
) -> None:
    found = train(**option)
    assert found.losses[0] == plain.losses[0]
    assert_equal(statistics(found), statistics(plain))
    assert {x.item() for n, x in found.states[1].items() if n.endswith('tracked')} == {2}
    # Gradients that meet in one place may be added up in another order.
    for step in range(2):
        assert_all_close(found.gradients[step], plain.gradients[step], rtol=1e-3, atol=1e-6)
        assert_all_close(found.states[step], plain.states[step], rtol=1e-4, atol=1e-7)


def test_accumulated_gradients_are_the_mean_over_the_batches(train: Callable) -> None:
    still = train(**{'optim_wrapper.optimizer.lr': 0.0})
    found = train(**{'optim_wrapper.accumulative_counts': 2})
    (gradient,) = found.gradients
    first, second = still.gradients
    mean = {name: (gradient + second[name]) / 2 for name, gradient in first.items()}
    assert any('mean_weight' in name for name in mean)
    assert_all_close(gradient, mean, rtol=1e-5, atol=1e-7)
    before, after = still.states[1], found.states[1]
    expected = {name: x - LR * mean[name] if name in mean else x for name, x in before.items()}
    assert_all_close(after, expected, rtol=1e-5, atol=1e-7)
    # The running statistics have moved once for each batch.
    buffers = before.keys() - mean.keys()
    assert any('running_mean' in name for name in buffers)
    assert_equal({n: after[n] for n in buffers}, {n: before[n] for n in buffers})


def test_clipping_is_by_the_norm_of_all_gradients(plain: Course, train: Callable) -> None:
    gradients = plain.gradients[0]
    assert {name.rpartition('.')[2] for name in gradients} >= {'mean_weight', 'var_weight'}
    limit = norm_of(gradients).item() / 3
    found = train(steps=1, **{'optim_wrapper.clip_grad': dict(max_norm=limit)})
    torch.testing.assert_close(norm_of(found.gradients[0]).item(), limit, rtol=1e-4, atol=0)
    expected = {name: gradient / 3 for name, gradient in gradients.items()}
    assert_all_close(found.gradients[0], expected, rtol=1e-4, atol=1e-8)


def test_averages_follow_the_formula(plain: Course, train: Callable) -> None:
    found = train(custom_hooks=[dict(type='EMAHook', momentum=0.25)])
    assert_equal(found.states[1], plain.states[1])
    (hook,) = [hook for hook in found.runner.hooks if hasattr(hook, 'ema_model')]
    expected = dict(found.states[0])
    averaged = {name for name, _ in found.runner.model.named_parameters()}
    for state in found.states[1:]:
        for name, value in state.items():
            expected[name] = 0.75 * expected[name] + 0.25 * value if name in averaged else value
    assert_all_close(hook.ema_model.module.state_dict(), expected, rtol=1e-5, atol=1e-7)


@pytest.fixture(params=['bfloat16', pytest.param('float16', marks=pytest.mark.slow)])
def amp(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict:
    """Return the wrapper of the optimizer; mmengine allows it on no CPU, and float16 neither."""

    @contextmanager
    def autocast(dtype: torch.dtype) -> Iterator[None]:
        with torch.autocast('cpu', dtype):
            yield

    monkeypatch.setattr('mmengine.runner.amp.autocast', autocast)
    return dict(CPU_AMP, dtype=request.param)


def test_mixed_precision_is_close(amp: dict, plain: Course, train: Callable) -> None:
    seen = {}

    def watch(model: torch.nn.Module) -> None:
        for name, layer in model.named_modules():
            if isinstance(layer, SwitchNorm):
                layer.register_forward_hook(lambda _, x, y, n=name: seen.update({n: y.dtype}))

    found = train(watch, steps=1, optim_wrapper=amp)
    assert getattr(torch, amp['dtype']) in seen.values()
    assert {x.dtype for x in found.states[0].values()} == {torch.float32, torch.int64}
    assert all(gradient.isfinite().all() for gradient in found.gradients[0].values())
    torch.testing.assert_close(found.losses[0], plain.losses[0], rtol=0.05, atol=0)
    assert found.runner.optim_wrapper.loss_scaler.get_scale() == SCALE
    unit = torch.finfo(getattr(torch, amp['dtype'])).eps
    for name, value in statistics(plain).items():
        assert (found.states[0][name] - value).norm() < 8 * unit * value.norm(), name
    first, exact = ({n: g.double() for n, g in c.gradients[0].items()} for c in (found, plain))
    dots = sum((first[name] * exact[name]).sum() for name in exact)
    assert dots / (norm_of(first) * norm_of(exact)) > 0.95


def test_channels_last_is_close(plain: Course, train: Callable) -> None:
    formats = set()

    def to_channels_last(model: torch.nn.Module) -> None:
        model.to(memory_format=torch.channels_last)
        for layer in model.backbone.modules():
            if isinstance(layer, SwitchNorm):
                layer.register_forward_hook(
                    lambda _, x, y: formats.add(y.is_contiguous(memory_format=torch.channels_last))
                )

    found = train(to_channels_last, steps=1)
    assert formats == {True}
    assert_close_courses(found, plain)


@pytest.mark.slow
def test_compiled_training_is_close(plain: Course, train: Callable) -> None:
    # The forward and backward graphs of the default backend, without its compiler.
    assert_close_courses(train(steps=1, compile=dict(backend='aot_eager')), plain)
