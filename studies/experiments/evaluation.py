"""Evaluating the network of a runner without its loops: while it trains, or afterwards."""

from typing import Any

import torch
from mmengine.runner import Runner
from torch import nn
from torch.utils.data import DataLoader


def run_batch(model: nn.Module, batch: Any) -> None:
    """Run a batch through a model as training does, for `batch_average`."""
    model(**model.data_preprocessor(batch, training=True), mode='loss')


def train_loader(runner: Runner) -> DataLoader:
    """Return a loader of the training data that takes another order."""
    settings = {**runner.cfg.train_dataloader, 'num_workers': 0, 'persistent_workers': False}
    return runner.build_dataloader(settings, seed=runner.seed + 1)


@torch.no_grad()
def evaluate(runner: Runner, name: str) -> dict[str, float]:
    """Return the metrics of the validation by name, without the hooks of a validation."""
    loop = runner.val_loop
    runner.model.eval()
    for batch in loop.dataloader:
        loop.evaluator.process(data_samples=runner.model.val_step(batch), data_batch=batch)
    metrics = loop.evaluator.evaluate(len(loop.dataloader.dataset))
    runner.model.train()
    return {f'{name}/{metric}': value for metric, value in metrics.items()}
