"""The hook that evaluates a network in training with several kinds of running statistics."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import Runner

from sn_openmmlab.inference.random_state import kept_random_state
from sn_openmmlab.layers.batch_average import batch_average
from studies.experiments.evaluation import evaluate, run_batch, train_loader
from studies.experiments.moving_averages import MovingAverages

# The name of each kind of batch average, by its variance.
BATCH_AVERAGES = {'mean': 'batch average', 'pooled': 'batch average, pooled'}


def moving(momentum: float) -> str:
    """Return the name of the moving average with a momentum."""
    return f'moving {momentum}'


@HOOKS.register_module()
class StatisticsHook(Hook):
    """Evaluate a network at points of its training with moving averages and with batch average.

    The metrics of each kind are logged under its name, as `'moving 0.1/accuracy/top1'`. Weights,
    random numbers and the order of the data are those of a training without the hook.

    Args:
        momenta: of the moving averages.
        points: when to evaluate, as shares of all iterations in [0, 1].
        batches: how many training batches the batch average takes. It is the same ones each time.
        variances: of the batch averages, as in `batch_average`.
    """

    def __init__(
        self,
        momenta: Sequence[float],
        points: Sequence[float],
        batches: int,
        variances: Sequence[str] = ('mean',),
    ) -> None:
        self._momenta = momenta
        self._points = points
        self._batches = batches
        self._variances = variances

    def before_train(self, runner: Runner) -> None:
        """Begin the moving averages, and load the data of the batch average."""
        self._steps = {round(point * runner.max_iters) for point in self._points}
        self._averages = MovingAverages(runner.model, self._momenta)
        with kept_random_state():
            self._loader = train_loader(runner)

    def before_train_epoch(self, runner: Runner) -> None:
        """Evaluate and log before the first iteration if that is one of the points."""
        if runner.iter == 0:
            self._evaluate_at(runner, 0)

    def after_train_iter(
        self,
        runner: Runner,
        batch_idx: int,
        data_batch: Any = None,
        outputs: Any = None,
    ) -> None:
        """Evaluate and log if this iteration is one of the points."""
        self._evaluate_at(runner, runner.iter + 1)

    def _evaluate_at(self, runner: Runner, step: int) -> None:
        if step not in self._steps:
            return
        with kept_random_state(), self._averages.paused():
            found = self._evaluate_all(runner)
        runner.visualizer.add_scalars(found, step=step)

    def _evaluate_all(self, runner: Runner) -> dict[str, float]:
        found = {}
        for momentum in self._momenta:
            self._averages.load(momentum)
            found |= evaluate(runner, moving(momentum))
        for variance in self._variances:
            batches = islice(self._loader, self._batches)
            batch_average(runner.model, batches, run_batch, variance=variance, batch_norm=True)
            found |= evaluate(runner, BATCH_AVERAGES[variance])
        return found
