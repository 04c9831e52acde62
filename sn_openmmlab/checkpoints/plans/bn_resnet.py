"""The weights that a ResNet with BatchNorm has to have, of any depth, width, stem and length."""

import re
from collections.abc import Iterable, Mapping

from torch import Tensor

from sn_openmmlab.checkpoints.plans.resnet import BLOCKS, Shape

# Of a BatchNorm, but its counter, which old files lack.
VECTORS = ('weight', 'bias', 'running_mean', 'running_var')
_IN_BLOCK = re.compile(r'layer\d+\.\d+\.')
_PART_OF_BLOCK = re.compile(r'layer[1-4]\.\d+\.((conv|bn)[123]|downsample\.\d)\.\w+')


def is_resnet(weights: Mapping[str, Tensor]) -> bool:
    """Whether these are weights of a plain ResNet, even where some are missing or too many.

    What has other modules in its blocks, as deformable convolutions and attention, is none.
    """
    # HRNet begins as a ResNet does.
    if any(name.startswith('transition1.') for name in weights):
        return False
    inner = [name for name in weights if _IN_BLOCK.match(name)]
    if not all(_PART_OF_BLOCK.fullmatch(name) for name in inner):
        return False
    first, last = (weights.get(f'layer1.0.conv{i}.weight') for i in (1, 3))
    # RegNet has names of a ResNet, but its blocks do not widen.
    if first is not None and last is not None and last.shape[:1] == first.shape[:1]:
        return False
    return {'layer1.0.conv1.weight', 'layer1.0.conv2.weight'} <= weights.keys()


def bn_resnet_stages(names: Iterable[str]) -> int:
    """Return how many stages the ResNet of these names has: all four where it has a classifier."""
    names = list(names)
    if any(name.startswith('fc.') for name in names):
        return 4
    return max(int(found[1]) for name in names if (found := re.match(r'layer([1-4])\.', name)))


def resnet_title(weights: Mapping[str, Tensor], stages: int) -> str:
    """Return what the ResNet of these weights and so many stages is called."""
    kind = 'ResNeXt' if has_groups(weights) else 'ResNet'
    title = f'a {kind}-{bn_resnet_depth(weights)}'
    return title if stages == 4 else f'{title}, cut off after stage {stages},'


def has_groups(weights: Mapping[str, Tensor]) -> bool:
    """Whether the convolutions of a ResNet have groups."""
    conv = weights.get('layer1.0.conv2.weight')
    return conv is not None and conv.dim() == 4 and conv.shape[0] != conv.shape[1]


def bn_resnet_depth(names: Iterable[str]) -> int:
    """Return the depth of the ResNet that has these names, even where some are missing."""
    names = list(names)
    bottleneck = any(re.fullmatch(r'layer\d\.\d+\.conv3\.weight', name) for name in names)
    third = [int(found[1]) for name in names if (found := re.match(r'layer3\.(\d{1,9})\.', name))]
    depths = (50, 101, 152) if bottleneck else (18, 34)
    fitting = [depth for depth in depths if max(third, default=0) < BLOCKS[depth][2]]
    return min(fitting, default=depths[-1])


def bn_resnet_shapes(weights: Mapping[str, Tensor]) -> dict[str, Shape]:
    """Return name and shape of each weight, but ``num_batches_tracked``, of the ResNet of these.

    Widths, kernels and groups are what the weights say, as far as they fit together.
    """
    shapes: dict[str, Shape] = {}
    width = _stem(weights, shapes)
    depth = bn_resnet_depth(weights)
    for stage, blocks in enumerate(BLOCKS[depth][: bn_resnet_stages(weights)]):
        for block in range(blocks):
            name = f'layer{stage + 1}.{block}'
            width = _block(weights, shapes, name, width, stage, depth >= 50)
    return shapes


def _stem(weights: Mapping[str, Tensor], shapes: dict[str, Shape]) -> int:
    if 'conv1.weight' in weights or 'stem.0.weight' not in weights:
        return _conv_and_norm(weights, shapes, ('conv1', 'bn1'), None, 7, 64)
    width = None
    for i in (0, 3, 6):
        width = _conv_and_norm(weights, shapes, (f'stem.{i}', f'stem.{i + 1}'), width, 3, 64)
    return width


def _block(
    weights: Mapping[str, Tensor],
    shapes: dict[str, Shape],
    name: str,
    width_in: int,
    stage: int,
    bottleneck: bool,
) -> int:
    width = width_in
    for i, kernel in enumerate((1, 3, 1) if bottleneck else (3, 3), 1):
        pair = (f'{name}.conv{i}', f'{name}.bn{i}')
        usual = (256 if bottleneck and i == 3 else 64) * 2**stage
        width = _conv_and_norm(weights, shapes, pair, width, kernel, usual, bottleneck and i == 2)
    if name.endswith('.0') and (width != width_in or f'{name}.downsample.0.weight' in weights):
        # With average pooling before it in the v1d variant.
        first = 1 if f'{name}.downsample.2.running_mean' in weights else 0
        pair = (f'{name}.downsample.{first}', f'{name}.downsample.{first + 1}')
        _conv_and_norm(weights, shapes, pair, width_in, 1, width, width_out=width)
    return width


def _conv_and_norm(
    weights: Mapping[str, Tensor],
    shapes: dict[str, Shape],
    names: tuple[str, str],
    width_in: int | None,
    kernel: int,
    usual: int,
    grouped: bool = False,
    width_out: int | None = None,
) -> int:
    """Add the shapes of a convolution and its norm, and return how many channels they give.

    Args:
        weights: those of the file.
        shapes: gets the shapes.
        names: of the two.
        width_in: the channels that go in; None for those that the file says.
        kernel: for a convolution that is missing, as ``usual``, its channels.
        usual: likewise.
        grouped: whether the convolution may have groups.
        width_out: the channels that have to come out, where that is known.
    """
    conv, norm = names
    found = tuple(weights[f'{conv}.weight'].shape) if f'{conv}.weight' in weights else ()
    if len(found) != 4:
        found = (width_out or usual, width_in or 3, kernel, kernel)
    out, inner = width_out or found[0], width_in or found[1]
    if grouped and found[1] and inner % found[1] == 0:
        inner = found[1]
    shapes[f'{conv}.weight'] = (out, inner, *found[2:])
    shapes |= {f'{norm}.{part}': (out,) for part in VECTORS}
    return out
