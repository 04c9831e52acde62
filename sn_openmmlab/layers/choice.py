"""The choice that a sparse layer made: one scope for the means and one for the variances."""

from collections.abc import Sequence

import torch
from torch import Tensor

CONTROLS = ('mean_weight', 'var_weight')
CHOICES = ('mean_choice', 'var_choice')

Choice = tuple[int, ...]
"""The index of the chosen scope for each group of channels with ratios of its own."""


def check_scope_choice(
    name: str, choice: Tensor, num_ratio_groups: int, scopes: Sequence[str]
) -> None:
    """Raise ValueError unless `choice` names a scope for each group of ratios, by its index.

    Args:
        name: of the buffer, for the message.
        choice: (G,), int64.
        num_ratio_groups: G.
        scopes: the scopes to choose from.
    """
    if choice.shape != (num_ratio_groups,):
        raise ValueError(
            f'{name} must have one number for each of {num_ratio_groups} groups of ratios, but its '
            f'shape is {tuple(choice.shape)}.'
        )
    if not all(0 <= place < len(scopes) for place in choice.tolist()):
        raise ValueError(f'{name} is {choice.tolist()}, but must index the scopes {tuple(scopes)}.')


def chosen_control(control: Tensor, choice: Tensor) -> Tensor:
    """Return a control parameter whose ratios are 1 for the chosen scope and 0 for all others.

    The result does not depend on the values of `control`, but autograd connects the two, with
    gradients that are 0. So weight decay, momentum and averages may move λ without effect, and
    DistributedDataParallel gets the gradient that it waits for.

    Args:
        control: λ or λ′, (number of scopes,) or (G, number of scopes).
        choice: the index of the chosen scope, (G,), int64.
    """
    places = torch.arange(control.shape[-1], device=control.device)
    others = (places != choice.unsqueeze(-1)).reshape(control.shape)
    # Both fills, since a λ that is not finite must not reach the ratios.
    return control.masked_fill(~others, 0.0).masked_fill(others, -float('inf'))


def used_controls(
    controls: Sequence[Tensor], choices: Sequence[Tensor], used: Sequence[int]
) -> list[Tensor]:
    """Return λ and λ′ of the used scopes alone, with the ratios of the choices.

    Args:
        controls: λ and λ′.
        choices: `mean_choice` and `var_choice`.
        used: the indices of the scopes that one of the choices names.
    """
    if len(used) == 1:
        # The ratio of a single scope is 1, but for a λ that is not finite.
        own = [control[..., used[0] : used[0] + 1] for control in controls]
        return [one.masked_fill(torch.ones_like(one, dtype=torch.bool), 0.0) for one in own]
    fixed = map(chosen_control, controls, choices)
    return [torch.stack([control[..., k] for k in used], -1) for control in fixed]
