"""The compiled op for a process alone: one call, whose backward pass is compiled too.

Where the backward pass must itself be differentiated, or is transformed, it is computed by the
plain expression.
"""

from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor
from torch._ops import OpOverload

from sn_openmmlab.kernels.contract import Mixture, Moments
from sn_openmmlab.kernels.cpp.scopes import CODES, codes
from sn_openmmlab.ops.gradients import plain_gradients
from sn_openmmlab.ops.running import Running

_NAMES = tuple(CODES)
_NOTHING = (None, None, None, None)

# Called by the compiled backward pass.
_library = torch.library.Library('sn_openmmlab', 'FRAGMENT')
_library.define(
    'switch_norm_expressions(Tensor dy, Tensor x, Tensor? weight, Tensor? bias, Tensor mean_weight,'
    ' Tensor var_weight, Tensor? batch, int[] scopes, int num_groups, int correction, float eps,'
    ' bool instance_variance, bool[5] wanted) -> Tensor[]'
)


def whole_switch_norm(
    x: Tensor,
    affine: tuple[Tensor | None, Tensor | None],
    controls: Moments,
    mixture: Mixture,
    running: Running | None,
    training: bool,
) -> tuple[Tensor, Tensor]:
    """Normalize `x`, which is not empty; see `compute_switch_norm` for the arguments.

    Returns:
        The output, and mean and variance of `'bn'`, (2, C), where it is mixed.
    """
    scopes, *numbers = mixture
    return _operator()(
        x, *affine, *controls, *(running or _NOTHING), training, codes(scopes), *numbers
    )


@cache
def _operator() -> OpOverload:
    """Return the operator, which exists once the library is loaded."""
    return torch.ops.sn_openmmlab.fused_switch_norm.default


def _expressions(
    dy: Tensor,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean_weight: Tensor,
    var_weight: Tensor,
    batch: Tensor | None,
    scopes: Sequence[int],
    num_groups: int,
    correction: int,
    eps: float,
    instance_variance: bool,
    wanted: Sequence[bool],
) -> list[Tensor]:
    """Return the wanted gradients as expressions of the inputs and `dy`."""
    names = tuple(_NAMES[code] for code in scopes)
    return plain_gradients(
        dy,
        (x, weight, bias, mean_weight, var_weight),
        wanted,
        mixture=Mixture(names, num_groups, correction, eps, instance_variance),
        given=None if batch is None else tuple(batch.unbind()),
        group=None,
    )


# The transforms of torch do not look inside an operator by themselves.
for _key in ('CompositeImplicitAutograd', 'Batched', 'FuncTorchBatched'):
    _library.impl('switch_norm_expressions', _expressions, _key)
