"""Switchable Normalization by the plain backend: one expression that autograd differentiates."""

from torch import Tensor
from torch.distributed import ProcessGroup

from sn_openmmlab.kernels.contract import Mixture, Moments
from sn_openmmlab.kernels.plain.mixing import normalize
from sn_openmmlab.kernels.plain.moments import statistics_dtype
from sn_openmmlab.kernels.plain.scopes import batch_moments
from sn_openmmlab.ops.batch import BatchMoments, observe
from sn_openmmlab.ops.instances import instance_statistics


def plain_switch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean_weight: Tensor,
    var_weight: Tensor,
    *,
    mixture: Mixture,
    given: Moments | None,
    group: ProcessGroup | None,
) -> tuple[Tensor, BatchMoments | None]:
    """Normalize `x`, differentiable to any order; see `switch_norm`.

    Args:
        x: the input; see `switch_norm`, as for the parameters.
        weight: γ.
        bias: β.
        mean_weight: λ.
        var_weight: λ′.
        mixture: what to mix.
        given: moments of `'bn'` in place of those of the batch, or None.
        group: the processes whose batches `'bn'` pools, or None.

    Returns:
        The output, and the moments of the batch, detached; None where they are given or not mixed.
    """
    values = x.to(statistics_dtype(x.dtype))
    instances = instance_statistics(values, mixture, given)
    batch, observed = given, None
    if 'bn' in mixture.scopes and given is None:
        mean, var, samples = observe(batch_moments(*instances), x, group, anchor=mean_weight)
        batch = (mean, var)
        observed = BatchMoments(mean.detach(), var.detach(), samples)
    y = normalize(
        values,
        (weight, bias),
        (mean_weight, var_weight),
        instances,
        batch,
        list(mixture.scopes),
        mixture.num_groups,
        mixture.eps,
    )
    return y.to(x.dtype), observed
