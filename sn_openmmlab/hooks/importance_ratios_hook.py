"""The hook that logs the importance ratios while a model trains."""

from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner

from sn_openmmlab.analysis.importance import importance_ratios
from sn_openmmlab.analysis.ratio_course import ratio_scalars
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.arguments import check_flag
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.ops.arguments import check_count


class ImportanceRatiosHook(Hook):
    """Log the importance ratios (Eq. 5) of the SN layers while they train.

    mmengine's visualizer writes them where it writes the losses: into the local file
    `vis_data/scalars.json`, and into TensorBoard, WandB and the others if the config names them. In
    a config:

        custom_hooks = [dict(type='ImportanceRatiosHook', interval=50)]

    The scalars are the averages over the layers of each part of the network and over all layers,
    as `importance_ratio/backbone/mean/in` for w and `importance_ratio/all/var/bn` for w′. They are
    logged before the first iteration, after every ``interval`` iterations and after the last one.
    `tools/plot_importance.py` draws them. A sparse layer has the ratios 1 and 0.

    The hook only reads λ and λ′, so that the trained weights are bit for bit those of a training
    without it. With `EMAHook` the ratios are those of the trained weights, while a checkpoint holds
    their average. In a distributed training the first process logs its own, which all share.

    Args:
        interval: how many iterations lie between two logs.
        layers: whether to log each layer, too, as
            `importance_ratio_of_layer/backbone.layer1.0.sn1/mean/in`.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: if ``interval`` is below 1.
        UsageError: in a run, if the model has no SN.
    """

    def __init__(self, interval: int = 50, layers: bool = False) -> None:
        check_count('interval', interval)
        check_flag('layers', layers)
        self.interval = interval
        self.layers = layers

    def before_train(self, runner: Runner) -> None:
        """Log the ratios that the training starts from."""
        if not any(isinstance(layer, SwitchNorm) for layer in runner.model.modules()):
            raise UsageError(
                'ImportanceRatiosHook finds no SN in the model: remove it from custom_hooks.'
            )
        self._log(runner, runner.iter)

    def after_train_iter(self, runner: Runner, *args: object, **kwargs: object) -> None:
        """Log the ratios if it is time."""
        if self.every_n_train_iters(runner, self.interval) or self.is_last_train_iter(runner):
            self._log(runner, runner.iter + 1)

    def _log(self, runner: Runner, step: int) -> None:
        if is_main_process():
            scalars = ratio_scalars(importance_ratios(runner.model), self.layers)
            runner.visualizer.add_scalars(scalars, step=step)
