"""The weights that a ResNet has to have, of any depth, width, stem and length, by its norm."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from sn_openmmlab.checkpoints.plans.norm_shapes import NormKind, Shape

# The number of blocks in each stage, by depth.
BLOCKS = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
}
_BOTTLENECK = (50, 101, 152)
_IN_BLOCK = re.compile(r'layer\d+\.\d+\.')
_PART_OF_BN_BLOCK = re.compile(r'layer[1-4]\.\d+\.((conv|bn)[123]|downsample\.\d)\.\w+')


def is_bn_resnet(weights: Mapping[str, Tensor]) -> bool:
    """Return whether this is a plain ResNet with BatchNorm, even if weights are missing.

    A network with other modules in its blocks, such as deformable convolutions or attention, is
    not plain.
    """
    # HRNet begins like a ResNet.
    if any(name.startswith('transition1.') for name in weights):
        return False
    inner = [name for name in weights if _IN_BLOCK.match(name)]
    if not all(_PART_OF_BN_BLOCK.fullmatch(name) for name in inner):
        return False
    first, last = (weights.get(f'layer1.0.conv{i}.weight') for i in (1, 3))
    # RegNet has the names of a ResNet, but its blocks do not widen.
    if first is not None and last is not None and last.shape[:1] == first.shape[:1]:
        return False
    return {'layer1.0.conv1.weight', 'layer1.0.conv2.weight'} <= weights.keys()


def resnet_depth(names: Iterable[str], depths: Sequence[int] | None = None) -> int:
    """Return the depth of the ResNet with these names, even if some are missing.

    Args:
        names: The names of its weights.
        depths: The possible depths, in increasing order. If None, the blocks decide.
    """
    names = list(names)
    if depths is None:
        bottleneck = any(re.fullmatch(r'layer\d\.\d+\.conv3\.weight', name) for name in names)
        depths = _BOTTLENECK if bottleneck else (18, 34)
    third = [int(found[1]) for name in names if (found := re.match(r'layer3\.(\d{1,9})\.', name))]
    fitting = [depth for depth in depths if max(third, default=0) < BLOCKS[depth][2]]
    return min(fitting, default=depths[-1])


def resnet_stages(names: Iterable[str]) -> int:
    """Return the number of stages of the ResNet with these names: 4 if it has a classifier."""
    names = list(names)
    if any(name.startswith('fc.') for name in names):
        return 4
    return max(int(found[1]) for name in names if (found := re.match(r'layer([1-4])\.', name)))


def has_groups(weights: Mapping[str, Tensor]) -> bool:
    """Return whether the convolutions of a ResNet have groups, as those of ResNeXt do."""
    conv = weights.get('layer1.0.conv2.weight')
    return conv is not None and conv.dim() == 4 and conv.shape[0] != conv.shape[1]


def resnet_title(weights: Mapping[str, Tensor], stages: int) -> str:
    """Return the name that messages use for a ResNet with this number of stages."""
    kind = 'ResNeXt' if has_groups(weights) else 'ResNet'
    title = f'a {kind}-{resnet_depth(weights)}'
    return title if stages == 4 else f'{title}, cut off after stage {stages},'


def resnet_shapes(
    depth: int,
    norm: NormKind,
    stages: int = 4,
    like: Mapping[str, Tensor] | None = None,
) -> dict[str, Shape]:
    """Return name → shape of each weight but the counters of the norm layers.

    Args:
        depth: A key of `BLOCKS`.
        norm: The kind of its norm layers.
        stages: How many of the four stages it has.
        like: Weights that say the widths, kernels, groups and the stem, as far as they fit
            together. If None, these are the usual ones.
    """
    network = _ResNet(norm, like or {}, depth in _BOTTLENECK)
    width = network.add_stem()
    for stage, blocks in enumerate(BLOCKS[depth][:stages]):
        for block in range(blocks):
            width = network.add_block(stage, block, width)
    return network.shapes


@dataclass
class _ResNet:
    """A ResNet whose shapes are added from the stem to the last block."""

    norm: NormKind
    like: Mapping[str, Tensor]
    bottleneck: bool
    shapes: dict[str, Shape] = field(default_factory=dict)

    def add_stem(self) -> int:
        """Add the weights, and return the number of output channels."""
        if 'conv1.weight' in self.like or 'stem.0.weight' not in self.like:
            return self._add('conv1', f'{self.norm.abbreviation}1', (64, 3, 7, 7))
        width = None
        for i in (0, 3, 6):
            width = self._add(f'stem.{i}', f'stem.{i + 1}', (64, width or 3, 3, 3), width)
        return width

    def add_block(self, stage: int, block: int, width_in: int) -> int:
        """Add the weights, and return the number of output channels."""
        name, width = f'layer{stage + 1}.{block}', width_in
        for i, kernel in enumerate((1, 3, 1) if self.bottleneck else (3, 3), 1):
            usual = (256 if self.bottleneck and i == 3 else 64) * 2**stage
            width = self._add(
                f'{name}.conv{i}',
                f'{name}.{self.norm.abbreviation}{i}',
                (usual, width, kernel, kernel),
                width,
                grouped=self.bottleneck and i == 2,
            )
        shortcut = f'{name}.downsample'
        if block == 0 and (width != width_in or f'{shortcut}.0.weight' in self.like):
            # The v1d variant has average pooling before the convolution.
            first = 1 if f'{shortcut}.2.running_mean' in self.like else 0
            names = (f'{shortcut}.{first}', f'{shortcut}.{first + 1}')
            self._add(*names, (width, width_in, 1, 1), width_in, width)
        return width

    def _add(
        self,
        conv: str,
        norm: str,
        usual: Shape,
        width_in: int | None = None,
        width_out: int | None = None,
        grouped: bool = False,
    ) -> int:
        """Add a convolution and its norm, and return the number of output channels.

        Args:
            conv: The name of the convolution.
            norm: The name of the norm.
            usual: The shape of the convolution if `like` does not say another.
            width_in: The number of input channels; None to take that of `like`.
            width_out: The number of output channels; None to take that of `like`.
            grouped: Whether the convolution may have groups.
        """
        weight = self.like.get(f'{conv}.weight')
        found = usual if weight is None or weight.dim() != 4 else tuple(weight.shape)
        out, inner = width_out or found[0], width_in or found[1]
        if grouped and found[1] and inner % found[1] == 0:
            inner = found[1]
        self.shapes[f'{conv}.weight'] = (out, inner, *found[2:])
        self.shapes |= self.norm.shapes(norm, out)
        return out
