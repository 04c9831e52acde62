"""Fit SN layers that were converted from BatchNorm to the outputs of those BatchNorms."""

from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from sn_openmmlab.layers.switch_norm import SwitchNorm


@torch.no_grad()
def calibrate_switch_norm(module: nn.Module, *inputs: Any) -> nn.Module:
    """Fit γ and β so that each SN layer's output has the moments that its BatchNorm would give.

    A converted layer whose ratio of `'bn'` is below 1 shifts and scales its channels differently
    from the BatchNorm that it was. This function runs `module` once on `inputs` in evaluation mode.
    Each SN layer gets new γ and β as soon as its input arrives. Then its output has, per channel,
    the mean and standard deviation of BatchNorm's output on that input, computed with the layer's
    running statistics and its old γ and β. So each layer is fitted on the outputs of the fitted
    layers before it.

    Call it once, right after `convert_batch_norm`: a second call would take the fitted γ and β for
    the BatchNorm's. A layer without γ and β or without running statistics stays as it is, and so
    does a channel that is constant in `inputs`. A layer that is called twice is fitted to its first
    call.

    Args:
        module: a network or backbone with converted layers.
        *inputs: the arguments to call it with: some dozens of unlabelled images, preprocessed as in
            training.

    Returns:
        The same `module`, in the modes that it had.

    Example:
        ```python
        backbone = sn_openmmlab.convert_batch_norm(backbone, batch_ratio=0.9)
        sn_openmmlab.calibrate_switch_norm(backbone, images)  # (N, 3, H, W)
        ```
    """
    modes = {part: part.training for part in module.modules()}
    waiting = {layer for layer in module.modules() if _can_be_fitted(layer)}

    def fit_first(layer: SwitchNorm, args: tuple[Tensor, ...]) -> None:
        if layer in waiting and args[0].numel() > 0:
            waiting.remove(layer)
            _fit(layer, args[0])

    with ExitStack() as stack:
        for layer in list(waiting):
            stack.enter_context(layer.register_forward_pre_hook(fit_first))
        try:
            # In two steps: train and eval of the toolboxes' backbones return nothing.
            module.eval()
            module(*inputs)
        finally:
            for part, mode in modes.items():
                part.training = mode
    return module


def _can_be_fitted(layer: nn.Module) -> bool:
    converted = isinstance(layer, SwitchNorm) and layer.running_mean is not None
    return converted and layer.weight is not None


def _fit(layer: SwitchNorm, x: Tensor) -> None:
    """Set γ and β so that the output on `x` has the moments of BatchNorm's output."""
    gamma, beta = layer.weight.clone(), layer.bias.clone()
    mean, deviation = _channel_moments(x)
    scale = gamma.double() * (layer.running_var.double() + layer.eps).rsqrt()
    wanted = (mean - layer.running_mean.double()) * scale + beta.double()
    layer.weight.fill_(1)
    layer.bias.zero_()
    # Not the layer's own forward, which may include an activation.
    given, spread = _channel_moments(SwitchNorm.forward(layer, x))
    fitted = scale * deviation / spread
    found = fitted.isfinite() & (deviation > 0)
    layer.weight.copy_(torch.where(found, fitted, gamma.double()))
    layer.bias.copy_(torch.where(found, wanted - fitted * given, beta.double()))


def _channel_moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation over samples and positions, (C,) each, in float64."""
    flat = x.double().transpose(0, 1).flatten(1)
    return flat.mean(1), flat.std(1, correction=0)
