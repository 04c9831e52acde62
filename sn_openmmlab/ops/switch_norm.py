"""The op that the layers call."""

from collections.abc import Sequence

from torch import Tensor
from torch.distributed import ProcessGroup

from sn_openmmlab.kernels.contract import Mixture
from sn_openmmlab.ops.arguments import check_arguments
from sn_openmmlab.ops.batch import BatchMoments
from sn_openmmlab.ops.compute import compute_with_moments


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
    instance_variance: bool = True,
    batch_moments: tuple[Tensor, Tensor] | None = None,
    group: ProcessGroup | None = None,
) -> tuple[Tensor, BatchMoments | None]:
    """Normalize `x` by a mix of the statistics of several scopes (Eq. 3 to 5).

        y = γ · (x - Σ w_k μ_k) / sqrt(Σ w′_k σ_k² + ε) + β
        w = softmax(λ),    w′ = softmax(λ′)

    The fastest backend that can run computes it; see `use_backend`. Statistics are in float32 for
    half-precision inputs, else in the type of `x`.

    Args:
        x: (N, C, *) of 2 to 5 dimensions, of any floating-point type. N and the positions may be
            zero.
        weight: γ, (C,), or None for 1.
        bias: β, (C,), or None for 0.
        mean_weight: λ, (number of scopes,), the control parameters of the means; or (G, number of
            scopes), where each of G equal groups of channels has ratios of its own.
        var_weight: λ′, of the variances, in such a shape.
        scopes: the scopes in the order of the control parameters.
        num_groups: the number of groups of `'gn'`.
        correction: 0 or 1. The instance variance divides by the number of positions less this, at
            least by one (0: Eq. 2; 1: the authors' code).
        eps: ε of Eq. 3, added to the mixed variance.
        instance_variance: False says that only `'bn'` has a share in the variance, and that
            `batch_moments` are given: then the variance of the input is not computed.
        batch_moments: mean and variance of `'bn'`, (C,) each, in place of those of this batch; no
            gradients reach them.
        group: the processes whose batches `'bn'` pools, each sample with the same weight; None for
            this process alone.

    Returns:
        The output, in the shape, type and memory format of `x`, and the moments of `'bn'`,
            detached; None where they are given or not mixed.

    Raises:
        TypeError: if `scopes` is not a sequence of names, or `num_groups` not an integer.
        ValueError: if a scope is unknown or repeated, or shapes or types do not fit.
        BackendError: if a backend was forced that cannot run.

    Example:
        ```python
        x, ones = torch.randn(2, 64, 8, 8), torch.ones(3)
        scopes = ('in', 'ln', 'bn')
        y, batch = switch_norm(
            x, None, None, ones, ones, scopes=scopes, num_groups=32, correction=0, eps=1e-5
        )
        ```
    """
    check_arguments(x, (weight, bias), (mean_weight, var_weight), scopes, num_groups)
    mixture = Mixture(tuple(scopes), num_groups, correction, eps, instance_variance)
    group = group if 'bn' in mixture.scopes and batch_moments is None else None
    controls = (mean_weight, var_weight)
    return compute_with_moments(x, (weight, bias), controls, mixture, batch_moments, group)
