"""The convolution over time and space that starts from one over space."""

from torch import Tensor, nn
from torch.nn import functional


class InflatedConv3d(nn.Conv3d):
    """A 3-D convolution that sees the first and last frame of a clip repeated before and after it.

    So a clip of equal frames gives equal frames, which zeros would not. In space it pads as any
    other convolution; torch's own has one `padding_mode` for time and space.

    Its kernel has an odd size in time, its stride in time is 1, and `padding` in time is 0.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Convolve `x`, (N, C, T, H, W); the output has T frames too."""
        frames = self.kernel_size[0] // 2
        return super().forward(functional.pad(x, (0, 0, 0, 0, frames, frames), mode='replicate'))


def inflated_kernel(kernel: Tensor, frames: int) -> Tensor:
    """Return a kernel (O, I, h, w) repeated and divided by the number of frames: (O, I, t, h, w).

    On equal frames it gives what the kernel gives on one.
    """
    return kernel.unsqueeze(2).expand(-1, -1, frames, -1, -1) / frames


def inflated_conv(conv: nn.Conv2d, frames: int) -> nn.Conv3d:
    """Return a 2-D convolution inflated to see `frames` frames at a time.

    Raises:
        ValueError: if it has `padding='same'` and an even kernel, which pads unequal sides.
    """
    new = (nn.Conv3d if frames == 1 else InflatedConv3d)(
        conv.in_channels,
        conv.out_channels,
        (frames, *conv.kernel_size),
        (1, *conv.stride),
        (0, *_padding(conv)),
        (1, *conv.dilation),
        conv.groups,
        conv.bias is not None,
        conv.padding_mode,
        device='meta',
    )
    kernel = inflated_kernel(conv.weight.detach(), frames).contiguous()
    new.weight = nn.Parameter(kernel, requires_grad=conv.weight.requires_grad)
    new.bias = conv.bias
    return new.train(conv.training)


def _padding(conv: nn.Conv2d) -> tuple[int, ...]:
    """Return the padding in space as numbers; torch's `'same'` would pad time as well."""
    if not isinstance(conv.padding, str):
        return conv.padding
    if conv.padding == 'valid':
        return (0, 0)
    sides = [d * (k - 1) for d, k in zip(conv.dilation, conv.kernel_size, strict=True)]
    if any(side % 2 for side in sides):
        raise ValueError(
            f"a convolution with padding='same' and the kernel {conv.kernel_size} cannot be "
            'inflated: give its padding as numbers.'
        )
    return tuple(side // 2 for side in sides)
