"""The Batch Renormalization layer, which the paper compares Switchable Normalization with."""

from numbers import Integral

import torch
from torch import Tensor
from torch.fx import Proxy
from torch.nn.modules.instancenorm import _InstanceNorm

from sn_openmmlab.errors import UsageError
from sn_openmmlab.kernels.plain.moments import statistics_dtype
from sn_openmmlab.layers.arguments import (
    check_channels,
    check_eps,
    check_flag,
    check_momentum,
    check_num_features,
    is_number,
)
from sn_openmmlab.layers.leaf import record_leaf
from sn_openmmlab.layers.recomputation import is_recomputation
from sn_openmmlab.ops.autocast import without_autocast
from sn_openmmlab.ops.batch_moments import batch_moments
from sn_openmmlab.ops.running import move

_REPEATED = (
    'BRN cannot train with activation checkpointing, which repeats forward passes after its moving '
    'averages have moved: leave out with_cp and activation_checkpointing, or train with SN or BN.'
)


class BatchRenorm(_InstanceNorm):
    """Batch Renormalization (Ioffe, 2017, arXiv:1702.03275) of inputs of 2 to 5 dimensions.

    The layer computes BatchNorm, and corrects it towards the moving averages μ and σ with which it
    normalizes in evaluation. While training, for a batch of mean μ_B and biased variance v_B,

        y = γ · ((x - μ_B) / σ_B · r + d) + β,    σ_B = sqrt(v_B + ε)
        r = clip(σ_B / σ, 1 / r_max, r_max),      d = clip((μ_B - μ) / σ, -d_max, d_max)

    No gradients flow through r and d. μ and σ are those from before the batch; afterwards each
    moves towards the batch's μ_B and σ_B by the share `momentum`. In evaluation the layer is
    BatchNorm, y = γ · (x - μ) / σ + β.

    With r_max = 1 and d_max = 0 training is that of BatchNorm too. So it is for the first `begin`
    batches. Then r_max grows linearly from 1 to its final value, which it has after `r_end` batches
    in all, and d_max from 0 to its own, after `d_end`. The defaults are those of that paper, and
    long: in a training of fewer than 5000 iterations the layer is BatchNorm throughout.

    The layer counts the batches itself, in `num_batches_tracked`, so a resumed training goes on
    with the schedule. It counts the calls of `forward` in training mode. With accumulated gradients
    one step of the optimizer is several of them, and so it is in a head that several feature maps
    share.

    Parameters and buffers have the names and shapes of BatchNorm's, and the state dicts of both
    layers load into each other. `running_var` holds σ² - ε, so that both compute the same in
    evaluation. Two things differ in how it is averaged. As that paper does, the layer averages σ
    rather than σ², since r is 1 on average only if σ is the average of σ_B. And it leaves out
    BatchNorm's factor n / (n - 1), which is not in what training normalizes with.

    Statistics are computed in float32 for half-precision inputs. An input without samples gives an
    empty output and zero gradients, and counts for nothing. One value per channel, which BatchNorm
    refuses to train on, gives γ · d + β.

    mmengine and mmcv recognise the layer as a norm layer (`norm_decay_mult`) because it derives
    from torch's `_InstanceNorm`. Tools that rewrite BatchNorms, such as SyncBN conversion and
    conv-BN fusion, leave it alone. There is no synchronised form: each process normalizes with its
    own batch and keeps its own moving averages.

    Args:
        num_features: C, the number of channels.
        eps: ε, added to the variance.
        momentum: the share of the new value in μ and σ, in [0, 1]; None for the average over all
            batches.
        affine: whether the layer has γ and β.
        r_max: the final bound of r, at least 1.
        d_max: the final bound of d, at least 0.
        begin: the number of batches that are normalized as in BatchNorm.
        r_end: the number of batches after which r_max is reached, at least `begin`.
        d_end: the same for d_max.
        device: the device of parameters and buffers.
        dtype: the type of parameters and buffers.

    Attributes:
        weight: γ, (C,), initialised to 1, or None.
        bias: β, (C,), initialised to 0, or None.
        running_mean: μ, (C,), initialised to 0.
        running_var: σ² - ε, (C,), initialised to 1.
        num_batches_tracked: the number of batches so far, a scalar.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: if an argument is out of its range. In `forward`: if the input is not floating
            point, not of 2 to 5 dimensions, or not of C channels.
        UsageError: in a forward pass that activation checkpointing repeats while training.

    Example:
        ```python
        layer = BatchRenorm(64, begin=500, r_end=4000, d_end=2500)
        y = layer(torch.randn(2, 64, 32, 32))  # the same shape
        r_max, d_max = layer.limits()  # 1 and 0 after the first batch
        ```
    """

    # As BatchNorm, so that the toolboxes give both the same names in a network.
    _abbr_ = 'bn'

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.01,
        affine: bool = True,
        r_max: float = 3.0,
        d_max: float = 5.0,
        begin: int = 5000,
        r_end: int = 40_000,
        d_end: int = 25_000,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        check_num_features(num_features)
        check_eps(eps)
        check_momentum(momentum)
        check_flag('affine', affine)
        _check_bound('r_max', r_max, least=1)
        _check_bound('d_max', d_max, least=0)
        _check_step('begin', begin, 0, '0')
        _check_step('r_end', r_end, begin, 'begin')
        _check_step('d_end', d_end, begin, 'begin')
        super().__init__(num_features, eps, momentum, affine, True, device=device, dtype=dtype)
        self.r_max = r_max
        self.d_max = d_max
        self.begin = begin
        self.r_end = r_end
        self.d_end = d_end

    def forward(self, x: Tensor) -> Tensor:
        """Normalize `x`.

        Args:
            x: (N, C), (N, C, L), (N, C, H, W) or (N, C, D, H, W), of any floating-point type.

        Returns:
            The output, in the shape, type and memory format of `x`.
        """
        if isinstance(x, Proxy):
            return record_leaf(self, x)
        check_channels(x, self.num_features, type(self).__name__)
        dtype = statistics_dtype(x.dtype)
        tables = (self.weight, self.bias, self.running_mean, self.running_var)
        weight, bias, mean, var = (None if t is None else t.to(dtype) for t in tables)
        with without_autocast(x.device):
            if not self.training:
                return _batch_norm(x, weight, bias, mean, var, self.eps)
            if x.numel() > 0:
                r, d = self._correct(x, mean, var)
                shift = d if weight is None else weight * d + bias
                weight, bias = (r if weight is None else weight * r), shift
            return _batch_norm(x, weight, bias, None, None, self.eps)

    def limits(self) -> tuple[Tensor, Tensor]:
        """Return r_max and d_max for the next batch, two scalars in float32."""
        r_max = 1 + (self.r_max - 1) * self._progress(self.r_end)
        return r_max, self.d_max * self._progress(self.d_end)

    def extra_repr(self) -> str:
        names = ('eps', 'momentum', 'affine', 'r_max', 'd_max', 'begin', 'r_end', 'd_end')
        return ', '.join([str(self.num_features), *(f'{n}={getattr(self, n)}' for n in names)])

    def _progress(self, end: int) -> Tensor:
        """Return how far a bound has grown, from 0 at `begin` to 1 at `end`."""
        # A tensor, since reading the number would wait for the GPU.
        done = self.num_batches_tracked - self.begin
        share = done / (end - self.begin) if end > self.begin else (done >= 0).float()
        return share.clamp(0, 1)

    @torch.no_grad()
    def _correct(self, x: Tensor, mean: Tensor, var: Tensor) -> tuple[Tensor, Tensor]:
        """Return r and d of a batch, (C,) each, and move the averages `mean` and `var` after it."""
        if is_recomputation():
            raise UsageError(_REPEATED)
        batch_mean, batch_var = batch_moments(x)
        batch_deviation, deviation = ((v + self.eps).sqrt() for v in (batch_var, var))
        r_max, d_max = (limit.to(mean.dtype) for limit in self.limits())
        r = (batch_deviation / deviation).clamp(1 / r_max, r_max)
        d = ((batch_mean - mean) / deviation).clamp(-d_max, d_max)
        self.num_batches_tracked.add_(1)
        share = self.momentum
        if share is None:
            share = self.num_batches_tracked.to(mean.dtype).reciprocal()
        move(self.running_mean, batch_mean, share)
        move(deviation, batch_deviation, share)
        # Rounding must not make a variance of 0 negative.
        self.running_var.copy_((deviation.square() - self.eps).clamp(min=0))
        return r, d


def _batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    var: Tensor | None,
    eps: float,
) -> Tensor:
    """Return `functional.batch_norm`, by the batch without moments, also of one value."""
    cudnn = torch.backends.cudnn.enabled
    return torch.batch_norm(x, weight, bias, mean, var, mean is None, 0.0, eps, cudnn)


def _check_bound(name: str, value: float, least: int) -> None:
    if not is_number(value):
        raise TypeError(f'{name} must be a number, not {value!r}.')
    if not least <= value < float('inf'):
        raise ValueError(f'{name} is {value}, but must be finite and at least {least}.')


def _check_step(name: str, value: int, least: int, shown: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f'{name} must be a whole number of batches, not {value!r}.')
    if value < least:
        raise ValueError(f'{name} is {value}, but must be at least {shown}.')
