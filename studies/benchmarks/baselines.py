"""The layers that are timed beside each other."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.ops.backends import use_backend

BN, GN = 'BN', 'GN'
FUSED = 'SN fused'
PLAIN = 'SN plain'
ATEN = 'SN aten'


class ChainSwitchNorm(SwitchNorm):
    """SN as public code computes it: Eq. 4 and 3, one elementwise operation after another."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalize ``x``, (N, C, H, W), in training."""
        flat = x.flatten(2)
        mean_in = flat.mean(-1, keepdim=True)
        var_in = flat.var(-1, correction=self.correction, keepdim=True)
        power = var_in + mean_in.square()
        mean_ln = mean_in.mean(1, keepdim=True)
        var_ln = power.mean(1, keepdim=True) - mean_ln.square()
        mean_bn = mean_in.mean(0, keepdim=True)
        var_bn = power.mean(0, keepdim=True) - mean_bn.square()
        mean_ratios, var_ratios = self.mean_weight.softmax(0), self.var_weight.softmax(0)
        mean = mean_ratios[0] * mean_in + mean_ratios[1] * mean_ln + mean_ratios[2] * mean_bn
        var = var_ratios[0] * var_in + var_ratios[1] * var_ln + var_ratios[2] * var_bn
        y = ((flat - mean) / (var + self.eps).sqrt()).view_as(x)
        shape = (1, -1, 1, 1)
        with torch.no_grad():
            for running, new in ((self.running_mean, mean_bn), (self.running_var, var_bn)):
                running.lerp_(new.flatten().to(running.dtype), self.momentum)
        return y * self.weight.view(shape) + self.bias.view(shape)


class AtenSwitchNorm(SwitchNorm):
    """SN on the backend that is made of torch's calls, which needs no compiled kernel."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalize ``x``, (N, C, H, W)."""
        with use_backend('aten'):
            return super().forward(x)


class SingleRankSyncBN(nn.BatchNorm2d):
    """Run the kernels of `torch.nn.SyncBatchNorm`, which a single process would not call."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalize ``x``, (N, C, H, W) on CUDA, in training."""
        function = torch.nn.modules._functions.SyncBatchNorm
        group = torch.distributed.group.WORLD
        return function.apply(
            x,
            self.weight,
            self.bias,
            self.running_mean,
            self.running_var,
            self.eps,
            self.momentum,
            group,
            1,
        )


def compared_layers(channels: int, x: Tensor) -> dict[str, nn.Module]:
    """Return the layers to compare by name, for inputs like `x` of shape (N, channels, H, W).

    Layers that torch runs with mixed types keep float32 parameters; the others get the type of `x`.
    """
    layers = {
        BN: nn.BatchNorm2d(channels),
        GN: nn.GroupNorm(32, channels).to(x.dtype),
        'IN': nn.InstanceNorm2d(channels, affine=True).to(x.dtype),
        PLAIN: ChainSwitchNorm(channels, correction=1),
        ATEN: AtenSwitchNorm(channels),
        FUSED: SwitchNorm(channels),
        'SN compiled': _compiled(SwitchNorm(channels)),
    }
    if x.is_cuda and torch.distributed.is_initialized():
        layers['SyncBN'] = SingleRankSyncBN(channels)
    return {name: layer.to(x.device) for name, layer in layers.items()}


def _compiled(layer: nn.Module) -> nn.Module:
    torch._dynamo.reset()
    return torch.compile(layer, dynamic=False)


def forward(layer: nn.Module, x: Tensor) -> Callable[[], object]:
    """Return a function that runs the forward pass without autograd, in the mode of the layer."""

    def run() -> Tensor:
        with torch.no_grad():
            return layer(x)

    return run


def evaluation(layer: nn.Module, x: Tensor) -> Callable[[], object]:
    """Return a function that runs a copy of the layer in evaluation mode, without autograd."""
    return forward(copy.deepcopy(layer).eval(), x)


def forward_backward(layer: nn.Module, x: Tensor, dy: Tensor) -> Callable[[], object]:
    """Return a function that runs forward and backward, to the input and all parameters."""
    x = x.detach().requires_grad_()
    wanted = [x, *layer.parameters()]

    def run() -> tuple[Tensor, ...]:
        return torch.autograd.grad(layer(x), wanted, dy)

    return run
