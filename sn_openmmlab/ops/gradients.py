"""The gradients of the fused op where they are differentiated again."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from sn_openmmlab.ops.autocast import without_autocast
from sn_openmmlab.ops.expression import plain_switch_norm


def plain_gradients(
    dy: Tensor, inputs: Sequence[Tensor | None], wanted: Sequence[bool], **settings: Any
) -> list[Tensor]:
    """Return the wanted gradients as expressions of the inputs and `dy`.

    Args:
        dy: the gradient of the output.
        inputs: x, γ, β, λ and λ′.
        wanted: for each of them, whether its gradient is asked for.
        settings: the other arguments of `plain_switch_norm`.
    """
    with without_autocast(dy.device):
        with torch.enable_grad():
            # Aliases: inputs that depend on each other must not see each other's gradients here.
            aliases = [None if t is None else t.view_as(t) for t in inputs]
            y, _ = plain_switch_norm(*aliases, **settings)
        targets = [alias for alias, want in zip(aliases, wanted, strict=True) if want]
        create_graph = torch.is_grad_enabled()
        return list(torch.autograd.grad(y, targets, dy, create_graph=create_graph))


def expressions(
    dy: Tensor, inputs: Sequence[Tensor | None], wanted: Sequence[bool], **settings: Any
) -> list[Tensor | None]:
    """Return what `plain_gradients` does, with None in the places of the others."""
    found = iter(plain_gradients(dy, inputs, wanted, **settings))
    return [next(found) if want else None for want in wanted]
