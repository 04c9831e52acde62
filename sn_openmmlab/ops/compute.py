"""The op for arguments that were checked: on the chosen backend, with running statistics."""

from collections.abc import Callable
from functools import cache

from torch import Tensor
from torch.distributed import ProcessGroup

from sn_openmmlab.kernels.contract import Mixture, Moments
from sn_openmmlab.ops.backends import choose_backend, fused_stages
from sn_openmmlab.ops.batch import BatchMoments
from sn_openmmlab.ops.batch_alone import batch_alone, is_batch_alone
from sn_openmmlab.ops.expression import plain_switch_norm
from sn_openmmlab.ops.fused import FusedSwitchNorm, Settings
from sn_openmmlab.ops.running import Running, track
from sn_openmmlab.ops.whole import whole_switch_norm

Affine = tuple[Tensor | None, Tensor | None]
# Takes the arguments of `compute_switch_norm` but the group, and returns what
# `whole_switch_norm` does.
Whole = Callable[..., tuple[Tensor, Tensor | None]]


def compute_switch_norm(
    x: Tensor,
    affine: Affine,
    controls: Moments,
    mixture: Mixture,
    running: Running | None,
    training: bool,
    group: ProcessGroup | None,
) -> Tensor:
    """Return `x` normalized, and move the running statistics in training.

    Args:
        x: the input; see `switch_norm`.
        affine: γ and β.
        controls: λ and λ′.
        mixture: what to mix.
        running: the running statistics of `'bn'`, or None.
        training: whether the moments of `'bn'` are those of this batch, towards which the running
            statistics move. If not, they are the running statistics, or without any those of the
            batch.
        group: the processes whose batches `'bn'` pools, or None.
    """
    backend = choose_backend(x, mixture.scopes)
    whole = _whole(backend, x, group)
    if whole is not None:
        # Its moments stay one table: two views of them would cost a fifth of a small call.
        return whole(x, affine, controls, mixture, running, training)[0]
    return _in_stages(backend, x, affine, controls, mixture, running, training, group)[0]


def compute_with_moments(
    x: Tensor,
    affine: Affine,
    controls: Moments,
    mixture: Mixture,
    given: Moments | None,
    group: ProcessGroup | None,
) -> tuple[Tensor, BatchMoments | None]:
    """Return `x` normalized, and the moments of the batch; None where they are given or not mixed.

    Args:
        x: the input; see `switch_norm`.
        affine: γ and β.
        controls: λ and λ′.
        mixture: what to mix.
        given: the moments of `'bn'` to use, or None.
        group: the processes whose batches `'bn'` pools, or None.
    """
    backend = choose_backend(x, mixture.scopes)
    running = None if given is None else Running(*given)
    whole = _whole(backend, x, group)
    if whole is None:
        training = running is None
        return _in_stages(backend, x, affine, controls, mixture, running, training, group)
    y, batch = whole(x, affine, controls, mixture, running, training=False)
    if given is not None or 'bn' not in mixture.scopes:
        return y, None
    return y, BatchMoments(batch[0], batch[1], x.shape[0])


def _whole(backend: str, x: Tensor, group: ProcessGroup | None) -> Whole | None:
    """Return the op as one call of a backend that needs no stages, or None."""
    # The backend first: a recording must not see a question about the input.
    if backend not in ('cpp', 'triton') or group is not None or x.numel() == 0:
        return None
    return whole_switch_norm if backend == 'cpp' else _triton_switch_norm()


@cache
def _triton_switch_norm() -> Whole:
    # Triton need not be installed.
    from sn_openmmlab.ops.whole_triton import triton_switch_norm

    return triton_switch_norm


def _in_stages(
    backend: str,
    x: Tensor,
    affine: Affine,
    controls: Moments,
    mixture: Mixture,
    running: Running | None,
    training: bool,
    group: ProcessGroup | None,
) -> tuple[Tensor, BatchMoments | None]:
    given = None if training or running is None else running.moments
    y, observed = _compute(backend, x, affine, controls, mixture, given, group)
    if training and running is not None and observed is not None:
        track(running, observed)
    return y, observed


def _compute(
    backend: str,
    x: Tensor,
    affine: Affine,
    controls: Moments,
    mixture: Mixture,
    given: Moments | None,
    group: ProcessGroup | None,
) -> tuple[Tensor, BatchMoments | None]:
    if given is not None:
        # Copies: they may be running statistics that change before the backward pass.
        given = tuple(table.detach().clone() for table in given)
    if backend == 'plain' or (x.numel() == 0 and group is None):
        return plain_switch_norm(x, *affine, *controls, mixture=mixture, given=given, group=group)
    if is_batch_alone(mixture, given, controls):
        y = batch_alone(x, *affine, given, mixture.eps)
        if y is not None:
            return y, None
    settings = Settings(fused_stages(backend), mixture, group)
    moments = (None, None) if given is None else given
    y, batch, samples = FusedSwitchNorm.apply(x, *affine, *controls, *moments, settings)
    return y, None if samples is None else BatchMoments(batch[0], batch[1], samples)
