"""Fits the SN layers that came from BatchNorm to what those BatchNorms gave."""

from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from sn_openmmlab.layers.switch_norm import SwitchNorm


@torch.no_grad()
def calibrate_switch_norm(module: nn.Module, *inputs: Any) -> nn.Module:
    """Let each SN layer give the mean and deviation per channel that its BatchNorm would give.

    A converted layer whose ratio of ``'bn'`` is below 1 moves and scales its channels otherwise
    than the BatchNorm that it was. ``module`` runs once on ``inputs`` in evaluation mode. Each SN
    layer, as soon as its input comes, gets the γ and β with which its output has, per channel, the
    mean and standard deviation that BatchNorm's formula gives on that input, with the layer's
    running statistics and its γ and β of before. So layers are fitted in order, each on what the
    fitted ones before it give.

    Call it once, right after ``convert_batch_norm``: a
    second call would take the fitted γ and β for those of the BatchNorm. Left as they are: a layer
    without γ and β or without running statistics, a channel that does not vary in ``inputs``, and
    a layer that is called again, after its first call.

    Args:
        module: a network or backbone with converted layers.
        *inputs: what to call it with: some dozens of unlabelled images, as it is to see them.

    Returns:
        ``module``, in the modes that it had.
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
            # The toolboxes' backbones return nothing here.
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
    """Set γ and β by the formula of BatchNorm in evaluation, for the mean and deviation of x."""
    gamma, beta = layer.weight.clone(), layer.bias.clone()
    mean, deviation = _channel_moments(x)
    scale = gamma.double() * (layer.running_var.double() + layer.eps).rsqrt()
    wanted = (mean - layer.running_mean.double()) * scale + beta.double()
    layer.weight.fill_(1)
    layer.bias.zero_()
    # Not the layer's own forward, which may activate its output.
    given, spread = _channel_moments(SwitchNorm.forward(layer, x))
    fitted = scale * deviation / spread
    found = fitted.isfinite() & (deviation > 0)
    layer.weight.copy_(torch.where(found, fitted, gamma.double()))
    layer.bias.copy_(torch.where(found, wanted - fitted * given, beta.double()))


def _channel_moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation, (C,) each, over samples and positions, in float64."""
    flat = x.double().transpose(0, 1).flatten(1)
    return flat.mean(1), flat.std(1, correction=0)
