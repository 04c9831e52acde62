"""A real checkpoint of MMEngine, files that would run code, and small networks."""

import os
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import pytest
import torch
from mmengine.evaluator import BaseMetric
from mmengine.logging import HistoryBuffer
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.data import DataLoader


class Line(BaseModel):
    """The smallest model of MMEngine: y = ax + b."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def forward(self, inputs: torch.Tensor, mode: str = 'tensor') -> Any:
        y = self.layer(inputs)
        return {'loss': y.square().mean()} if mode == 'loss' else [y]


class Half(BaseMetric):
    """A metric that is a NumPy float32, like the mIoU of MMSegmentation."""

    default_prefix = 'test'

    def process(self, data_batch: Any, data_samples: Any) -> None:
        self.results.append(0)

    def compute_metrics(self, results: list) -> dict:
        return {'half': np.float32(0.5)}


@pytest.fixture(scope='session')
def line_runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """A finished run of two epochs with moments, a moving average and schedules."""
    data = [{'inputs': torch.tensor([float(i), 1.0])} for i in range(8)]
    runner = Runner(
        Line(),
        work_dir=str(tmp_path_factory.mktemp('line')),
        train_dataloader=DataLoader(data, batch_size=2),
        train_cfg=dict(by_epoch=True, max_epochs=2),
        optim_wrapper=dict(optimizer=dict(type='AdamW', lr=0.01)),
        param_scheduler=[
            dict(type='OneCycleLR', eta_max=0.1, total_steps=8, by_epoch=False),
            dict(type='MultiStepLR', milestones=[1]),
        ],
        val_dataloader=DataLoader(data, batch_size=2),
        val_cfg=dict(),
        val_evaluator=[Half()],
        default_hooks=dict(
            checkpoint=dict(type='CheckpointHook', save_best='test/half', rule='greater'),
            logger=dict(type='LoggerHook', interval=1),
        ),
        custom_hooks=[dict(type='EMAHook')],
        randomness=dict(seed=0),
        log_level='WARNING',
    )
    runner.train()
    return runner


@pytest.fixture(scope='session')
def real_checkpoint(line_runner: Runner) -> Path:
    """The checkpoint of that run's last epoch."""
    return Path(line_runner.work_dir) / 'epoch_2.pth'


class Call:
    """Pickles as a call, which is made on unpickling."""

    def __init__(self, function: Callable, *args: Any) -> None:
        self.call = (function, args)

    def __reduce__(self) -> tuple:
        return self.call

    def __call__(self) -> None:
        """Make pickle accept an instance as a function."""


def open_by_allowed_names() -> Call:
    """Return a call that finds `open` by names that real checkpoints hold too."""
    variables = Call(getattr, Call(getattr, HistoryBuffer, 'mean'), '__globals__')
    functions = Call(Call(getattr, variables, 'get'), '__builtins__')
    return Call(Call(getattr, functions, 'get'), 'open')


PAYLOADS: dict[str, Callable[[str], Any]] = {
    'system': lambda marker: Call(os.system, f'touch {quote(marker)}'),
    'eval': lambda marker: Call(eval, f'open({marker!r}, "w")'),
    'exec': lambda marker: Call(exec, f'open({marker!r}, "w")'),
    'open': lambda marker: Call(open, marker, 'w'),
    'getattr_of_module': lambda marker: Call(
        Call(getattr, Call(__import__, 'os'), 'system'), f'touch {quote(marker)}'
    ),
    'getattr_of_class': lambda marker: Call(
        Call(getattr, Call(getattr, Path, 'write_text'), '__call__'), Path(marker), ''
    ),
    'getattr_of_allowed': lambda marker: Call(open_by_allowed_names(), marker, 'w'),
}


@pytest.fixture
def malicious(tmp_path: Path) -> Callable[[str, bool], tuple[Path, Path]]:
    """A function (payload, zip_format) -> a checkpoint, and the file that its code would make."""

    def write(payload: str, zip_format: bool) -> tuple[Path, Path]:
        name = f'{payload}-{"zip" if zip_format else "legacy"}'
        marker = tmp_path / f'{name}.marker'
        file = tmp_path / f'{name}.pth'
        torch.save(
            {'state_dict': {}, 'meta': PAYLOADS[payload](str(marker))},
            file,
            _use_new_zipfile_serialization=zip_format,
        )
        return file, marker

    return write


@pytest.fixture(params=[True, False], ids=['zip', 'legacy'])
def zip_format(request: pytest.FixtureRequest) -> bool:
    """Whether the file has torch's newer format."""
    return request.param


@pytest.fixture(params=PAYLOADS)
def payload(request: pytest.FixtureRequest) -> str:
    """A way to run code on unpickling."""
    return request.param


@pytest.fixture(scope='session')
def trained() -> Callable[[nn.Module], nn.Module]:
    """A function that makes the BatchNorm layers of a model look trained."""

    def fill(model: nn.Module) -> nn.Module:
        torch.manual_seed(0)
        with torch.no_grad():
            for layer in model.modules():
                if isinstance(layer, _BatchNorm):
                    layer.weight.uniform_(0.5, 1)
                    layer.bias.normal_(0, 0.1)
                    layer.running_mean.normal_(0, 0.3)
                    layer.running_var.uniform_(0.5, 1.5)
        model.eval()
        return model

    return fill


@pytest.fixture(scope='session')
def build_net() -> Callable[[Callable[[int], nn.Module], str], nn.Module]:
    """A function (norm, abbreviation) -> a net with the norm under each kind of name.

    The toolboxes name a norm after its kind, or by its place in a sequence.
    """

    def build(norm: Callable[[int], nn.Module], name: str) -> nn.Module:
        return nn.ModuleDict(
            {
                'conv1': nn.Conv2d(3, 4, 1),
                f'{name}1': norm(4),
                'layer': nn.ModuleDict({name: norm(4), 'convs': nn.Sequential(norm(4))}),
            }
        )

    return build


@pytest.fixture
def bn_weights(build_net: Callable) -> dict[str, torch.Tensor]:
    """The weights of that net with BatchNorm, each filled with another number."""
    state = build_net(nn.BatchNorm2d, 'bn').state_dict()
    return {name: torch.full_like(value, i) for i, (name, value) in enumerate(state.items())}
