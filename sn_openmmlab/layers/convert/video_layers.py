"""The layers for video that take the places of layers for images."""

import copy
import inspect
from functools import partial

from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.utils.parametrize import is_parametrized

from sn_openmmlab.layers.convert.inflated_conv import inflated_conv

# Subclasses of torch's layers in there compute what torch's do.
_PLAIN_MODULES = ('torch.nn.modules.', 'mmcv.cnn.bricks.wrappers')
_METHODS = ('forward', 'train')
# Layers of torch for images whose names do not say so. On clips some would resize time.
_RESIZERS = (nn.Upsample, nn.PixelShuffle, nn.PixelUnshuffle, nn.Fold, nn.Unfold)
# The settings of a pooling in time: it leaves frames alone, or pools all of them.
_POOL_IN_TIME = {'kernel_size': 1, 'stride': 1, 'padding': 0, 'dilation': 1, 'output_size': 1}


def video_layer(name: str, layer: nn.Module, frames: int) -> nn.Module | None:
    """Return the layer for video that takes the place of a layer, or None for one that stays.

    Args:
        name: of the layer, for messages.
        layer: a layer for images, or any other module.
        frames: the number of frames that a kernel larger than 1x1 sees.

    Raises:
        ValueError: if it is a layer for images that is not known.
    """
    make = next((make for kind, make in _MAKERS.items() if isinstance(layer, kind)), None)
    if make is None and not _is_for_images(layer):
        return None
    if make is None or _is_changed(layer):
        raise ValueError(
            f'inflate_module does not know what {name or "the module"}, a {type(layer).__name__}, '
            'does with a clip: put a layer for video in its place, or inflate the parts of the '
            'network around it.'
        )
    return make(layer, frames).train(layer.training)


def _is_for_images(layer: nn.Module) -> bool:
    """Return whether a layer that is not known takes the last two dimensions for an image."""
    return '2d' in type(layer).__name__.lower() or isinstance(layer, _RESIZERS)


def _is_changed(layer: nn.Module) -> bool:
    """Return whether a layer does not do what torch's does, or has no kernel of its own.

    It is lazy or computes the kernel from others, as pruning and weight normalization do.
    """
    owners = [next(kind for kind in type(layer).__mro__ if m in vars(kind)) for m in _METHODS]
    plain = all(owner.__module__.startswith(_PLAIN_MODULES) for owner in owners)
    own = any(method in vars(layer) for method in _METHODS)
    lacks_kernel = isinstance(layer, nn.Conv2d) and layer._parameters.get('weight') is None
    lazy = isinstance(layer, LazyModuleMixin)
    return not plain or own or lazy or lacks_kernel or is_parametrized(layer)


def _conv(layer: nn.Conv2d, frames: int) -> nn.Module:
    return inflated_conv(layer, 1 if layer.kernel_size == (1, 1) else frames)


def _pool(layer: nn.Module, _: int, kind: type[nn.Module]) -> nn.Module:
    settings = {name: getattr(layer, name) for name in inspect.signature(kind).parameters}
    for name in settings.keys() & _POOL_IN_TIME:
        space = settings[name]
        pair = space if isinstance(space, tuple) else (space, space)
        settings[name] = (_POOL_IN_TIME[name], *pair)
    return kind(**settings)


def _of_class(layer: nn.Module, _: int, kind: type[nn.Module]) -> nn.Module:
    """Return a layer of another class that differs in the check of the dimensions alone."""
    new = copy.copy(layer)
    new.__class__ = kind
    return new


_MAKERS = {
    nn.Conv2d: _conv,
    nn.MaxPool2d: partial(_pool, kind=nn.MaxPool3d),
    nn.AvgPool2d: partial(_pool, kind=nn.AvgPool3d),
    nn.AdaptiveMaxPool2d: partial(_pool, kind=nn.AdaptiveMaxPool3d),
    nn.AdaptiveAvgPool2d: partial(_pool, kind=nn.AdaptiveAvgPool3d),
    nn.BatchNorm2d: partial(_of_class, kind=nn.BatchNorm3d),
    nn.InstanceNorm2d: partial(_of_class, kind=nn.InstanceNorm3d),
    nn.Dropout2d: partial(_of_class, kind=nn.Dropout3d),
}
