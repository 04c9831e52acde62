"""The hook that makes a model sparse in the middle of a training."""

from mmengine.dist import broadcast
from mmengine.hooks import Hook
from mmengine.logging import print_log
from mmengine.runner import IterBasedTrainLoop, Runner
from torch import nn

from sn_openmmlab.analysis.choices import scope_choices, summary_table
from sn_openmmlab.checkpoints.trial_loading import unwrapped
from sn_openmmlab.errors import UsageError
from sn_openmmlab.hooks.averages import share_choices
from sn_openmmlab.layers.arguments import check_flag
from sn_openmmlab.layers.sparse import sparsify
from sn_openmmlab.layers.switch_norm import SwitchNorm


class SparsifyHook(Hook):
    """Make every SN layer sparse when the training reaches an epoch or an iteration.

    From then on each layer uses one scope for its means and one for its variances, those with the
    largest ratios (see `sn_openmmlab.sparsify`), and all else goes on learning. The log shows what
    was chosen. In a config, for example for the last quarter of 24 epochs:

        custom_hooks = [dict(type='SparsifyHook', begin=18)]

    The average of `EMAHook` gets the choices of the model, and so does every process of a
    distributed run. A checkpoint holds the choices: what is resumed or started from a sparse one is
    sparse from the start and keeps them.

    Args:
        begin: the number of epochs, or of iterations, that are trained before; 0 for none.
        by_epoch: whether ``begin`` counts epochs. A training by iterations needs False.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: if ``begin`` is negative. In a run: if λ or λ′ are not finite at that time.
        UsageError: in a run, if the model has no SN, the training ends before ``begin``, or it has
            no epochs to count.
    """

    def __init__(self, begin: int, by_epoch: bool = True) -> None:
        if isinstance(begin, bool) or not isinstance(begin, int):
            raise TypeError(f'begin must be a whole number, but is {begin!r}.')
        if begin < 0:
            raise ValueError(f'begin must be 0 or more, but is {begin}.')
        check_flag('by_epoch', by_epoch)
        self.begin = begin
        self.by_epoch = by_epoch

    def before_train(self, runner: Runner) -> None:
        """Check that ``begin`` will be reached, and let averages start as sparse as the model."""
        if not any(isinstance(layer, SwitchNorm) for layer in runner.model.modules()):
            raise UsageError('SparsifyHook finds no SN in the model: remove it from custom_hooks.')
        if self.by_epoch and isinstance(runner.train_loop, IterBasedTrainLoop):
            raise UsageError(
                'SparsifyHook counts epochs, but the training counts iterations: write '
                "dict(type='SparsifyHook', begin=ITERATION, by_epoch=False)."
            )
        unit, most = ('epoch', runner.max_epochs) if self.by_epoch else ('iter', runner.max_iters)
        if self.begin >= most:
            raise UsageError(
                f'SparsifyHook has begin={self.begin}, but the training ends at {unit} {most}: set '
                'a smaller begin.'
            )
        share_choices(runner)

    def before_train_epoch(self, runner: Runner) -> None:
        """Make the model sparse if the epoch is reached."""
        if self.by_epoch and runner.epoch >= self.begin:
            _make_sparse(runner)

    def before_train_iter(self, runner: Runner, batch_idx: int, data_batch: object = None) -> None:
        """Make the model sparse if the iteration is reached."""
        if not self.by_epoch and runner.iter >= self.begin:
            _make_sparse(runner)


def _make_sparse(runner: Runner) -> None:
    model = unwrapped(runner.model)
    layers = [layer for layer in model.modules() if isinstance(layer, SwitchNorm)]
    if all(layer.is_sparse for layer in layers):
        return
    sparsify(model)
    _agree(layers)
    share_choices(runner)
    print_log(
        f'SN is sparse from now on; the scopes that its layers use:\n'
        f'{summary_table(scope_choices(model))}',
        logger='current',
    )


def _agree(layers: list[nn.Module]) -> None:
    """Give every process the choices of the first one."""
    for layer in layers:
        for choice in (layer.mean_choice, layer.var_choice):
            broadcast(choice)
        layer.choose(layer.mean_choice, layer.var_choice)
