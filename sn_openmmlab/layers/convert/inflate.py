"""Turn networks for images, and their weights, into networks for video."""

from collections import OrderedDict
from collections.abc import Mapping

from torch import Size, Tensor, nn

from sn_openmmlab.layers.convert.inflated_conv import inflated_kernel
from sn_openmmlab.layers.convert.turn_into import turn_into
from sn_openmmlab.layers.convert.video_layers import video_layer


def inflate_module(module: nn.Module, frames: int = 3) -> nn.Module:
    """Turn a network for images into one for video, in place (I3D, Table 6 of the paper).

    It then takes clips, (N, C, T, H, W), and keeps all T frames up to its last pooling:

    - A convolution with a kernel larger than 1x1 sees `frames` frames at a time. Its kernel is
      repeated over them and divided by their number. At the ends of a clip it sees the first and
      the last frame repeated. A 1x1 convolution sees one frame.
    - A pooling with a window works on each frame. Pooling to a given size also pools all frames
      into one.
    - SN, SyncSN and GroupNorm stay as they are. They take clips: `'bn'` has the statistics of
      N·T·H·W values, `'ln'` of C·T·H·W, `'in'` of T·H·W. BatchNorm becomes BatchNorm3d.

    So a clip of equal frames gives in evaluation what its frame gave, where SN has `correction=0`.

    The layers stay the same objects. The kernels of convolutions are new parameters, so make the
    optimizer afterwards. What `forward` itself does with maps has to work on clips too.

    Args:
        module: a network or a part of one, such as a ResNet of a toolbox, with its weights loaded.
        frames: the number of frames that a kernel sees, odd.

    Returns:
        The same `module`.

    Raises:
        TypeError: if `frames` is no integer.
        ValueError: if `frames` is not odd and positive, or the module has a layer for images that
            is not known, such as a deformable convolution. Then nothing is changed.

    Example:
        ```python
        backbone = sn_openmmlab.inflate_module(backbone)
        features = backbone(torch.randn(2, 3, 8, 64, 64))  # two clips of eight frames
        ```
    """
    _check_frames(frames)
    made = {layer: video_layer(name, layer, frames) for name, layer in module.named_modules()}
    for layer, new in made.items():
        if new is not None:
            turn_into(layer, new)
    return module


def inflate_weights(weights: Mapping[str, Tensor], module: nn.Module) -> dict[str, Tensor]:
    """Return the weights of a network for images in the shapes of one for video.

    A kernel (O, I, h, w) is repeated over the t frames of the kernel (O, I, t, h, w) in `module`
    and divided by t. All other weights stay, since those of norm layers are per channel.

    Args:
        weights: a state dict, with the names of `module`.
        module: the network for video.

    Returns:
        A state dict, with what SN layers recorded in its metadata.

    Raises:
        ValueError: if a weight has neither the shape that `module` has, nor that shape without
            frames.

    Example:
        ```python
        video.load_state_dict(sn_openmmlab.inflate_weights(images.state_dict(), video))
        ```
    """
    wanted = {name: weight.shape for name, weight in module.state_dict().items()}
    inflated = OrderedDict(
        (name, _inflated(name, weight, wanted.get(name, weight.shape)))
        for name, weight in weights.items()
    )
    if hasattr(weights, '_metadata'):
        inflated._metadata = weights._metadata
    return inflated


def _check_frames(frames: int) -> None:
    if not isinstance(frames, int) or isinstance(frames, bool):
        raise TypeError(f'frames must be an integer, not {frames!r}.')
    if frames < 1 or frames % 2 == 0:
        raise ValueError(
            f'frames is {frames}, but a kernel sees as many frames before as after its own: give '
            'an odd number, such as 3.'
        )


def _inflated(name: str, weight: Tensor, shape: Size) -> Tensor:
    if weight.shape == shape:
        return weight
    if len(shape) == 5 and weight.shape == (*shape[:2], *shape[3:]):
        return inflated_kernel(weight, shape[2])
    raise ValueError(
        f'{name} has the shape {tuple(weight.shape)}, which does not inflate to the shape '
        f'{tuple(shape)} of the network for video: build both networks with the same options.'
    )
