"""A ResNet for images of 32×32 pixels that a CPU trains in minutes."""

from typing import ClassVar

from mmengine.registry import MODELS
from mmpretrain.models import ResNet_CIFAR
from mmpretrain.models.backbones.resnet import BasicBlock


@MODELS.register_module()
class ThinResNet(ResNet_CIFAR):
    """MMPretrain's `ResNet_CIFAR` with one block a stage, and a stem of stride 2.

    With three stages it has nine convolutions, two of them the 1×1 of shortcuts. Half the
    resolution means a quarter of the multiplications.
    """

    arch_settings: ClassVar = {10: (BasicBlock, (1, 1, 1, 1))}

    def _make_stem_layer(self, in_channels: int, base_channels: int) -> None:
        super()._make_stem_layer(in_channels, base_channels)
        self.conv1.stride = (2, 2)
