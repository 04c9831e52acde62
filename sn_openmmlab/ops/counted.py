"""The op as one node of its own kind, for tools that count operations.

The counters of mmengine and fvcore record a model by `torch.jit` and count each node by its kind.
They cannot recognise the plain expression, which every other recording is made of. Other recordings
do not use this node, since their graphs must run without this package.
"""

from typing import Any

import torch
from torch import Tensor

from sn_openmmlab.kernels.contract import Mixture, Moments
from sn_openmmlab.ops.batch import BatchMoments, count_samples
from sn_openmmlab.ops.running import Running, track
from sn_openmmlab.ops.switch_norm import switch_norm

KIND = 'sn_openmmlab::switch_norm'

_library = torch.library.Library('sn_openmmlab', 'DEF')
# γ is second, where the counters look for it to see whether there is an affine map.
_library.define(
    'switch_norm(Tensor x, Tensor? weight, Tensor? bias, Tensor mean_weight, Tensor var_weight, '
    'Tensor? batch_mean, Tensor? batch_var, str scopes, int num_groups, int correction, float eps) '
    '-> (Tensor, Tensor, Tensor)'
)


def counted_switch_norm(
    x: Tensor,
    affine: tuple[Tensor | None, Tensor | None],
    controls: Moments,
    mixture: Mixture,
    running: Running | None,
    training: bool,
) -> Tensor:
    """Do what `compute_switch_norm` does for a process alone, as one node in a recording."""
    given = None if training or running is None else running.moments
    y, mean, var = torch.ops.sn_openmmlab.switch_norm(
        x,
        *affine,
        *controls,
        *((None, None) if given is None else given),
        ','.join(mixture.scopes),
        mixture.num_groups,
        mixture.correction,
        mixture.eps,
    )
    if training and running is not None:
        track(running, BatchMoments(mean, var, count_samples(x)))
    return y


def _run(*arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    *parameters, batch_mean, batch_var, scopes, num_groups, correction, eps = arguments
    y, observed = switch_norm(
        *parameters,
        scopes=scopes.split(','),
        num_groups=num_groups,
        correction=correction,
        eps=eps,
        batch_moments=None if batch_mean is None else (batch_mean, batch_var),
    )
    if observed is None:
        return y, y.new_empty(0), y.new_empty(0)
    return y, observed.mean, observed.var


_library.impl('switch_norm', _run, 'CompositeExplicitAutograd')
