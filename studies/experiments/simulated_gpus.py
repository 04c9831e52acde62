"""Norm layers that normalize one batch as several GPUs would, each its own images.

Of N images, GPU j of G takes the images j, j + G, j + 2G and so on, as the samplers of the
toolboxes deal them out. So the images of each GPU form their own channels in a view (N / G, G·C, H,
W) of the batch (N, C, H, W), and one call normalizes them all. The gradients are those of the
average over the GPUs. The running statistics are the averages of those of the GPUs.
"""

from mmengine.registry import MODELS
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.batch_renorm import BatchRenorm
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.ops.batch import BatchMoments
from sn_openmmlab.ops.running import Running, track
from sn_openmmlab.ops.switch_norm import switch_norm


@MODELS.register_module()
class SimulatedSN(SwitchNorm):
    """SN over the images of each of `gpus` GPUs.

    Args:
        num_features: as in `SwitchNorm`, as are further arguments.
        gpus: G, which divides the images of each batch in training.
    """

    def __init__(self, num_features: int, gpus: int = 1, **settings: object) -> None:
        super().__init__(num_features, **settings)
        if {'ln', 'gn'} <= set(self.scopes):
            raise UsageError("SimulatedSN mixes 'ln' or 'gn', not both: leave one out of scopes.")
        self.gpus = gpus

    def forward(self, x: Tensor) -> Tensor:
        """Normalize `x`, (N, C, H, W)."""
        if not self.training:
            return super().forward(x)
        # All channels of one GPU's image are a group of channels of the view.
        groups = self.num_groups if 'gn' in self.scopes else 1
        y, observed = switch_norm(
            _view(x, self.gpus),
            self.weight.repeat(self.gpus),
            self.bias.repeat(self.gpus),
            self.mean_weight,
            self.var_weight,
            scopes=['gn' if scope == 'ln' else scope for scope in self.scopes],
            num_groups=groups * self.gpus,
            correction=self.correction,
            eps=self.eps,
        )
        if observed is not None and self.track_running_stats:
            running = Running(
                self.running_mean, self.running_var, self.num_batches_tracked, self.momentum
            )
            mean, var = (_average(table, self.gpus) for table in observed[:2])
            track(running, BatchMoments(mean, var, len(x)))
        return y.view_as(x)


@MODELS.register_module()
class SimulatedBN(nn.BatchNorm2d):
    """BN over the images of each of `gpus` GPUs.

    Args:
        num_features: as in `torch.nn.BatchNorm2d`, as are further arguments.
        gpus: G, which divides the images of each batch in training.
    """

    _abbr_ = 'bn'

    def __init__(self, num_features: int, gpus: int = 1, **settings: object) -> None:
        super().__init__(num_features, **settings)
        self.gpus = gpus

    def forward(self, x: Tensor) -> Tensor:
        """Normalize `x`, (N, C, H, W)."""
        if not self.training:
            return super().forward(x)
        running = [table.repeat(self.gpus) for table in (self.running_mean, self.running_var)]
        y = F.batch_norm(
            _view(x, self.gpus),
            *running,
            self.weight.repeat(self.gpus),
            self.bias.repeat(self.gpus),
            training=True,
            momentum=self.momentum,
            eps=self.eps,
        )
        self.num_batches_tracked.add_(1)
        for table, of_all in zip((self.running_mean, self.running_var), running, strict=True):
            table.copy_(_average(of_all, self.gpus))
        return y.view_as(x)


@MODELS.register_module()
class SimulatedBRN(BatchRenorm):
    """Batch Renormalization over the images of each of `gpus` GPUs.

    All GPUs correct towards the same moving averages, those over the GPUs.

    Args:
        num_features: as in `BatchRenorm`, as are further arguments.
        gpus: G, which divides the images of each batch in training.
    """

    def __init__(self, num_features: int, gpus: int = 1, **settings: object) -> None:
        super().__init__(num_features, **settings)
        self.gpus = gpus
        # In a list, so that its own parameters are no part of the network.
        self._all_gpus = [BatchRenorm(num_features * gpus, **settings)]

    def forward(self, x: Tensor) -> Tensor:
        """Normalize `x`, (N, C, H, W)."""
        if not self.training:
            return super().forward(x)
        names = ('weight', 'bias', 'running_mean', 'running_var')
        tables = {name: getattr(self, name).repeat(self.gpus) for name in names}
        count = {'num_batches_tracked': self.num_batches_tracked}
        y = functional_call(self._all_gpus[0], {**tables, **count}, _view(x, self.gpus))
        for name in ('running_mean', 'running_var'):
            getattr(self, name).copy_(_average(tables[name], self.gpus))
        return y.view_as(x)


def _view(x: Tensor, gpus: int) -> Tensor:
    if len(x) % gpus:
        raise UsageError(f'{gpus} GPUs cannot share {len(x)} images equally: drop the last batch.')
    return x.contiguous().view(len(x) // gpus, gpus * x.shape[1], *x.shape[2:])


def _average(table: Tensor, gpus: int) -> Tensor:
    return table.view(gpus, -1).mean(0)
