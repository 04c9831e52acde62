"""Models with SN whose ratios, statistics and affine maps are far from their initial values."""

import torch
from torch import nn

from sn_openmmlab import SwitchNorm


def spread(model: nn.Module, mixed: bool = False) -> nn.Module:
    """Draw γ, β, running statistics and the largest ratios of every SN layer; return the model.

    Args:
        model: is changed in place.
        mixed: whether means and variances may have the largest ratio in different scopes.
    """
    generator = torch.Generator().manual_seed(0)
    layers = [layer for layer in model.modules() if isinstance(layer, SwitchNorm)]
    with torch.no_grad():
        for i, layer in enumerate(layers):
            layer.weight.uniform_(0.5, 1.5, generator=generator)
            layer.bias.uniform_(-0.5, 0.5, generator=generator)
            if layer.running_mean is not None:
                layer.running_mean.uniform_(-0.5, 0.5, generator=generator)
                layer.running_var.uniform_(0.5, 2, generator=generator)
            number = len(layer.scopes)
            layer.mean_weight[i % number] = 3
            layer.var_weight[(i + (i // number if mixed else 0)) % number] = 3
    return model
