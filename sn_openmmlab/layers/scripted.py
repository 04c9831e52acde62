"""The layer's forward pass in the subset of Python that `torch.jit.script` compiles."""

from torch import Tensor

from sn_openmmlab.kernels.plain.mixing import normalize
from sn_openmmlab.kernels.plain.moments import instance_moments, statistics_dtype
from sn_openmmlab.kernels.plain.scopes import batch_moments
from sn_openmmlab.layers.choice import chosen_control
from sn_openmmlab.ops.running import move


def scripted_forward(
    x: Tensor,
    num_features: int,
    affine: tuple[Tensor | None, Tensor | None],
    controls: tuple[Tensor, Tensor],
    choices: tuple[Tensor | None, Tensor | None],
    running: tuple[Tensor | None, Tensor | None, Tensor | None],
    training: bool,
    momentum: float | None,
    scopes: list[str],
    num_groups: int,
    correction: int,
    eps: float,
) -> Tensor:
    """Normalize `x` in one process, and update the running statistics while training.

    Args:
        x: the input, (N, C, *); see `SwitchNorm`, as for the others.
        num_features: C.
        affine: γ and β.
        controls: λ and λ′.
        choices: `mean_choice` and `var_choice`.
        running: `running_mean`, `running_var` and `num_batches_tracked`.
        training: whether `'bn'` uses the batch of `x`, and tracks it.
        momentum: the share of the new value in the running statistics.
        scopes: the scopes in the order of the control parameters.
        num_groups: the number of groups of `'gn'`.
        correction: the correction of the instance variance, 0 or 1.
        eps: ε.

    Raises:
        ValueError: if `x` is not floating point, not of 2 to 5 dimensions, or not of C channels.
    """
    # torch.jit.script cannot compile our own exceptions, so this repeats check_channels in short.
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
        batch = batch_moments(instances[0], instances[1])
    else:
        batch = (running_mean, running_var)
    mean_choice, var_choice = choices
    if mean_choice is not None and var_choice is not None:
        controls = (
            chosen_control(controls[0], mean_choice),
            chosen_control(controls[1], var_choice),
        )
    y = normalize(values, affine, controls, instances, batch, scopes, num_groups, eps)
    seen = training and x.numel() > 0
    if seen and running_mean is not None and running_var is not None and batches is not None:
        batches.add_(1)
        share = 1 / float(batches) if momentum is None else momentum
        move(running_mean, batch[0].detach(), share)
        move(running_var, batch[1].detach(), share)
    return y.to(x.dtype)
