"""Switchable Normalization as one plain expression, differentiated by autograd to any order."""

from torch import Tensor
from torch.distributed import ProcessGroup

from sn_openmmlab.kernels.contract import Mixture
from sn_openmmlab.kernels.plain.mixing import normalize
from sn_openmmlab.kernels.plain.moments import instance_moments, statistics_dtype
from sn_openmmlab.kernels.plain.scopes import pool
from sn_openmmlab.ops.batch import BatchMoments, count_samples, merge_ranks

Moments = tuple[Tensor, Tensor]


def plain_switch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean_weight: Tensor,
    var_weight: Tensor,
    *,
    mixture: Mixture,
    correction: int,
    batch_moments: Moments | None,
    group: ProcessGroup | None,
) -> tuple[Tensor, BatchMoments | None]:
    """Normalize ``x``: see :func:`sn_openmmlab.ops.switch_norm.switch_norm`."""
    values = x.to(statistics_dtype(x.dtype))
    instances = instance_moments(values, correction)
    observed = None
    if 'bn' in mixture.scopes and batch_moments is None:
        observed = _observe(instances, x, group, anchor=mean_weight)
        batch_moments = observed[:2]
        observed = BatchMoments(observed.mean.detach(), observed.var.detach(), observed.samples)
    scopes, num_groups, eps = mixture
    y = normalize(
        values,
        (weight, bias),
        (mean_weight, var_weight),
        instances,
        batch_moments,
        list(scopes),
        num_groups,
        eps,
    )
    return y.to(x.dtype), observed


def _observe(
    instances: Moments, x: Tensor, group: ProcessGroup | None, anchor: Tensor
) -> BatchMoments:
    mean, var = pool(*instances, 'bn', 1)
    observed = BatchMoments(mean.squeeze(0), var.squeeze(0), count_samples(x))
    return observed if group is None else merge_ranks(observed, group, anchor)
