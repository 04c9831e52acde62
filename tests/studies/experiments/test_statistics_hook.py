"""The hook in a training by mmengine whose metric is what its norm layer would normalize with."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.evaluator import BaseMetric
from mmengine.model import BaseModel
from mmengine.registry import METRICS, MODELS
from mmengine.runner import Runner
from torch import Tensor, nn

from sn_openmmlab import SwitchNorm
from sn_openmmlab.analysis.curves import read_curves
from studies.experiments.statistics_hook import BATCH_AVERAGES, StatisticsHook, moving

IMAGES, BATCH, EPOCHS = 8, 2, 2
STEPS = IMAGES // BATCH * EPOCHS


class OneNorm(BaseModel):
    """A model of one norm layer, which keeps the moments of its batches and predicts its own."""

    def __init__(self, norm: str) -> None:
        super().__init__()
        self.scale = nn.Linear(1, 1)
        self.norm = SwitchNorm(1) if norm == 'sn' else nn.BatchNorm1d(1)
        # Those of SN and of BN, whose variance is larger by n / (n - 1).
        self.factor = 1 if norm == 'sn' else BATCH / (BATCH - 1)
        self.seen: list[tuple[float, float]] = []

    def forward(self, inputs: list[Tensor], mode: str) -> object:
        if mode == 'predict':
            return [(self.norm.running_mean.item(), self.norm.running_var.item()) for _ in inputs]
        x = self.scale(torch.stack(inputs))
        self.seen.append((x.mean().item(), x.var(correction=0).item() * self.factor))
        # Random numbers that act on the weights.
        return {'loss': (self.norm(x) * torch.rand(BATCH, 1)).sum()}


class Moments(BaseMetric):
    """The mean and variance that the model predicts."""

    def process(self, data_batch: object, data_samples: list) -> None:
        self.results.extend(data_samples)

    def compute_metrics(self, results: list) -> dict[str, float]:
        assert len(results) == 3
        return dict(zip(('mean', 'var'), results[0], strict=True))


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Runner]:
    """A function (name of the run, norm, hooks) -> the runner of a finished training."""
    monkeypatch.setitem(MODELS.module_dict, 'OneNorm', OneNorm)
    monkeypatch.setitem(METRICS.module_dict, 'Moments', Moments)
    images = torch.randn(IMAGES, 1, generator=torch.Generator().manual_seed(0))

    def run(name: str, norm: str, hooks: list[dict]) -> Runner:
        data = [dict(inputs=image) for image in images]
        loader = dict(batch_size=BATCH, sampler=dict(type='DefaultSampler', shuffle=True))
        config = dict(
            default_scope='mmengine',
            model=dict(type='OneNorm', norm=norm),
            work_dir=str(tmp_path / name),
            train_dataloader=dict(dataset=data, **loader),
            train_cfg=dict(by_epoch=True, max_epochs=EPOCHS, val_interval=EPOCHS + 1),
            optim_wrapper=dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.1)),
            val_dataloader=dict(dataset=data[:3], **loader),
            val_evaluator=dict(type='Moments'),
            val_cfg=dict(),
            custom_hooks=hooks,
            randomness=dict(seed=3),
            experiment_name=f'{tmp_path.name}_{name}',
        )
        runner = Runner.from_cfg(Config(config))
        runner.train()
        return runner

    return run


@pytest.fixture
def hook() -> dict:
    """The hook, which takes every image once for the batch average."""
    return dict(
        type=StatisticsHook.__name__,
        momenta=(0.1, 0.003),
        points=(0, 1 / 4, 1),
        batches=IMAGES // BATCH,
        variances=('mean', 'pooled'),
    )


@pytest.mark.parametrize('norm', ['sn', 'bn'])
def test_each_kind_of_statistics_is_used_at_each_point(
    norm: str, train: Callable, hook: dict, tmp_path: Path
) -> None:
    runner = train('hooked', norm, [hook])
    (file,) = tmp_path.glob('hooked/*/vis_data/scalars.json')
    _, found = read_curves([file])
    seen = runner.model.seen
    assert len(seen) == STEPS
    for momentum in (0.1, 0.003):
        for i, name in enumerate(('mean', 'var')):
            average, course = float(i), []
            for moments in seen:
                average += momentum * (moments[i] - average)
                course.append(average)
            expected = [float(i), course[1], course[-1]]
            steps, values = zip(*found[f'{moving(momentum)}/{name}'], strict=True)
            assert steps == (0, 2, STEPS)
            assert list(values) == pytest.approx(expected, rel=1e-5)
    # Over every image, whatever their order.
    x = runner.model.scale(
        torch.stack([item['inputs'] for item in runner.cfg.train_dataloader.dataset])
    )
    mean, pooled = BATCH_AVERAGES['mean'], BATCH_AVERAGES['pooled']
    assert found[f'{mean}/mean'][-1] == (STEPS, pytest.approx(x.mean().item(), rel=1e-5))
    variances = {kind: found[f'{kind}/var'][-1][1] for kind in (mean, pooled)}
    assert variances[mean] < variances[pooled]
    if norm == 'sn':
        assert variances[pooled] == pytest.approx(x.var(correction=0).item(), rel=1e-5)


def test_training_is_bit_equal_without_the_hook(train: Callable, hook: dict) -> None:
    with_hook, without = train('hooked', 'sn', [hook]).model, train('plain', 'sn', []).model
    assert with_hook.seen == without.seen
    assert all(map(torch.equal, with_hook.parameters(), without.parameters()))
