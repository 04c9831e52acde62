"""The layer's forward pass in the part of Python that ``torch.jit.script`` compiles."""

from torch import Tensor

from sn_openmmlab.kernels.plain.mixing import normalize
from sn_openmmlab.kernels.plain.moments import instance_moments, statistics_dtype
from sn_openmmlab.kernels.plain.scopes import pool
from sn_openmmlab.layers.running import move


def scripted_forward(
    x: Tensor,
    num_features: int,
    affine: tuple[Tensor | None, Tensor | None],
    controls: tuple[Tensor, Tensor],
    running: tuple[Tensor | None, Tensor | None, Tensor | None],
    training: bool,
    momentum: float | None,
    scopes: list[str],
    num_groups: int,
    correction: int,
    eps: float,
) -> Tensor:
    """Normalize ``x``, and in training keep the running statistics, of one process.

    Args:
        x: see :class:`~sn_openmmlab.layers.switch_norm.SwitchNorm`; so are the others.
        num_features: C.
        affine: γ and β.
        controls: λ and λ′.
        running: ``running_mean``, ``running_var`` and ``num_batches_tracked``.
        training: whether the batch is that of ``x``, and tracked.
        momentum: of the running statistics.
        scopes: in the order of the control parameters.
        num_groups: of ``'gn'``.
        correction: of the instance variance.
        eps: ε.

    Raises:
        ValueError: ``x`` is not of floating point, of 2 to 5 dimensions and of C channels.
    """
    dims = x.dim()
    if dims < 2 or dims > 5 or x.shape[1] != num_features or not x.is_floating_point():
        raise ValueError(
            f'SwitchNorm takes floating-point inputs of 2 to 5 dimensions and {num_features} '
            f'channels, but got {x.dtype} of shape {x.shape}.'
        )
    values = x.to(statistics_dtype(x.dtype))
    instances = instance_moments(values, correction)
    running_mean, running_var, batches = running
    if training or running_mean is None or running_var is None:
        mean, var = pool(instances[0], instances[1], 'bn', 1)
        batch = (mean.squeeze(0), var.squeeze(0))
    else:
        batch = (running_mean, running_var)
    y = normalize(values, affine, controls, instances, batch, scopes, num_groups, eps)
    seen = training and x.numel() > 0
    if seen and running_mean is not None and running_var is not None and batches is not None:
        batches.add_(1)
        share = 1 / float(batches) if momentum is None else momentum
        move(running_mean, batch[0].detach(), share)
        move(running_var, batch[1].detach(), share)
    return y.to(x.dtype)
