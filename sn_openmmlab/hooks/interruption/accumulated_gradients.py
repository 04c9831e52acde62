"""Gradients that a training has added up and no step has used yet."""

from collections.abc import Mapping

from mmengine.optim import OptimWrapper, OptimWrapperDict
from torch import Tensor, nn

from sn_openmmlab.checkpoints.trial_loading import unwrapped


def accumulated_gradients(
    model: nn.Module, wrapper: OptimWrapper | OptimWrapperDict
) -> dict[str, Tensor]:
    """Return the gradients by the names of their parameters; none if they were all used."""
    wrappers = (
        wrapper.optim_wrappers.values() if isinstance(wrapper, OptimWrapperDict) else [wrapper]
    )
    if all(part.should_update() for part in wrappers if isinstance(part, OptimWrapper)):
        return {}
    parameters = unwrapped(model).named_parameters()
    return {name: p.grad.cpu() for name, p in parameters if p.grad is not None}


def restore_gradients(model: nn.Module, gradients: Mapping[str, Tensor]) -> None:
    """Give the parameters of a model the gradients, by name, that a checkpoint holds."""
    for name, parameter in unwrapped(model).named_parameters():
        if name in gradients and gradients[name].shape == parameter.shape:
            parameter.grad = gradients[name].to(parameter)
