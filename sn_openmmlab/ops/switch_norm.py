"""The op that the layers call."""

from collections.abc import Sequence

from torch import Tensor
from torch.distributed import ProcessGroup

from sn_openmmlab.kernels.contract import Mixture
from sn_openmmlab.ops.arguments import check_arguments
from sn_openmmlab.ops.backends import choose_backend
from sn_openmmlab.ops.batch import BatchMoments
from sn_openmmlab.ops.expression import plain_switch_norm
from sn_openmmlab.ops.fused import FusedSwitchNorm, Kernels, Settings


def switch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean_weight: Tensor,
    var_weight: Tensor,
    *,
    scopes: Sequence[str],
    num_groups: int,
    correction: int,
    eps: float,
    batch_moments: tuple[Tensor, Tensor] | None = None,
    group: ProcessGroup | None = None,
) -> tuple[Tensor, BatchMoments | None]:
    """Normalize ``x`` by a mix of the statistics of several scopes (Eq. 3 to 5).

    It computes by the fastest backend that can run; see
    :func:`~sn_openmmlab.ops.backends.use_backend`. Statistics are in float32 for half-precision
    inputs, else in the type of ``x``.

    Args:
        x: (N, C, *), any floating-point type. N and the positions may be zero.
        weight: γ, (C,), or None for 1.
        bias: β, (C,), or None for 0.
        mean_weight: λ, (number of scopes,), the control parameters of the means.
        var_weight: λ′, (number of scopes,), those of the variances.
        scopes: the scopes in the order of the control parameters.
        num_groups: the number of groups of ``'gn'``.
        correction: 0 or 1; the instance variance divides by the number of positions less this, at
            least by one (0: Eq. 2; 1: the authors' code).
        eps: ε of Eq. 3, added to the mixed variance.
        batch_moments: mean and variance of ``'bn'``, (C,) each, in place of those of this batch;
            no gradients reach them.
        group: the processes whose batches ``'bn'`` pools, each sample with the same weight; None
            for this process alone.

    Returns:
        The output, in the shape, type and memory format of ``x``, and the moments of ``'bn'``,
        detached; None where they were given or no scope needs them.

    Raises:
        ValueError: an unknown scope, or arguments whose shapes or types do not fit.
        BackendError: a backend was forced that cannot run.
    """
    check_arguments(x, (weight, bias), (mean_weight, var_weight), scopes)
    mixture = Mixture(tuple(scopes), num_groups, eps)
    group = group if 'bn' in mixture.scopes and batch_moments is None else None
    if batch_moments is not None:
        # Copies: they may be running statistics that go on before the backward pass.
        batch_moments = tuple(table.detach().clone() for table in batch_moments)
    backend = choose_backend(x)
    if backend == 'plain' or (x.numel() == 0 and group is None):
        return plain_switch_norm(
            x,
            weight,
            bias,
            mean_weight,
            var_weight,
            mixture=mixture,
            correction=correction,
            batch_moments=batch_moments,
            group=group,
        )
    settings = Settings(_kernels(backend), mixture, correction, group)
    given = (None, None) if batch_moments is None else batch_moments
    y, *observed = FusedSwitchNorm.apply(x, weight, bias, mean_weight, var_weight, *given, settings)
    return y, None if observed[0] is None else BatchMoments(*observed)


def _kernels(backend: str) -> Kernels:
    if backend == 'triton':
        from sn_openmmlab.kernels.triton import passes, tables
    else:
        from sn_openmmlab.kernels.aten import passes, tables
    return Kernels(passes, tables)
