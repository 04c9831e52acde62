"""Where each SN layer lies in a network, from the names and shapes of the network's weights.

A checkpoint has no more than these, so that the same rules serve a checkpoint and a model.
"""

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from sn_openmmlab.layers.choice import CONTROLS

# How the toolboxes and torchvision call the branch that a block adds to its last convolution.
_SHORTCUTS = ('downsample', 'shortcut', 'skip')

Shape = tuple[int, ...]


class Place(NamedTuple):
    """Where a layer lies in its network.

    Attributes:
        conv: the convolution whose output the layer normalizes: the size of its kernel, as `'3x3'`;
            or `'shortcut'`, `'depthwise'` or `'linear'`; `'none'` if the input is not the output of
            one convolution; `''` if it is not known.
        depth: the number of convolutions and linear layers up to this layer, in the order of the
            network's weights. Those of shortcuts are not counted, so that in a ResNet it is the
            length of the path from the image. Parallel branches, as the levels of an FPN, count one
            after the other.
        stride: of that convolution, the largest over the dimensions; None if it is not known, since
            a checkpoint does not hold it.
    """

    conv: str = ''
    depth: int | None = None
    stride: int | None = None


UNKNOWN = Place()


def find_places(
    shapes: Mapping[str, Shape], strides: Mapping[str, int | None] | None = None
) -> dict[str, Place]:
    """Return the place of every SN layer, by the layer's name.

    Args:
        shapes: of all parameters and buffers by name, in the order of `state_dict()`.
        strides: of the convolutions by name, as far as they are known.
    """
    strides = strides or {}
    depths: dict[str, int] = {}
    places: dict[str, Place] = {}
    depth, last = 0, None
    modules = _by_module(shapes)
    for name, parts in modules.items():
        if _is_conv(name, parts, depths):
            depth += not _is_shortcut(name)
            depths[name] = depth
            last = name
        elif CONTROLS[0] in parts:
            conv = _namesake(name, depths) or last
            if conv is None or not _feeds(modules[conv]['weight'], parts):
                places[name] = Place('none', depth)
            else:
                first = conv == next(iter(depths))
                kind = _kind(conv, modules[conv]['weight'], first)
                places[name] = Place(kind, depths[conv], strides.get(conv))
            last = None
        elif _is_norm(parts):
            last = None
    return places


def _by_module(shapes: Mapping[str, Shape]) -> dict[str, dict[str, Shape]]:
    modules: dict[str, dict[str, Shape]] = {}
    for name, shape in shapes.items():
        module, _, part = name.rpartition('.')
        modules.setdefault(module, {})[part] = tuple(shape)
    return modules


def _is_conv(name: str, parts: Mapping[str, Shape], convs: Mapping[str, int]) -> bool:
    # A deformable convolution has another one inside, which computes its offsets.
    inside = any(name.startswith(f'{conv}.') for conv in convs)
    return len(parts.get('weight', ())) >= 2 and CONTROLS[0] not in parts and not inside


def _is_norm(parts: Mapping[str, Shape]) -> bool:
    affine = len(parts.get('weight', ())) == 1 and parts.get('bias') == parts['weight']
    return affine or 'running_mean' in parts


def _namesake(layer: str, convs: Mapping[str, int]) -> str | None:
    """Return `conv2` for `sn2` or `bn2` beside it, if the network has it before that layer."""
    conv = re.sub(r'(^|\.)(?:[a-z]n|norm)(\d+)$', r'\1conv\2', layer)
    return conv if conv in convs else None


def _feeds(weight: Shape, parts: Mapping[str, Shape]) -> bool:
    """Return whether a convolution gives the channels of a layer, as far as its weights tell."""
    # (C,), or (1, C, 1, 1) in the authors' files.
    shape = parts.get('weight') or parts.get('running_mean')
    # A transposed convolution has its outputs in the second place.
    outputs = weight[:2] if len(weight) > 2 else weight[:1]
    return shape is None or math.prod(shape) in outputs


def _is_shortcut(conv: str) -> bool:
    return any(part in _SHORTCUTS for part in conv.split('.'))


def _kind(conv: str, weight: Shape, first: bool) -> str:
    outputs, inputs, *kernel = weight
    if _is_shortcut(conv):
        return 'shortcut'
    if not kernel:
        return 'linear'
    # The first convolution of a network for grey images has one input, too.
    if inputs == 1 < outputs and not first:
        return 'depthwise'
    return 'x'.join(map(str, kernel))
