"""Compare what computes the op on a device with ATen in float64 on the CPU, on a small input."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from sn_openmmlab.kernels.aten import stages as aten
from sn_openmmlab.kernels.contract import Forward, Mixture, Stages

Passes = Callable[..., Sequence[Tensor]]
"""A forward and a backward pass: a function (x, dy, γ, β, λ, λ′) -> `QUANTITIES`."""

# Rows that a kernel has to split, with a rest, and several groups of channels.
SHAPE = (2, 6, 65, 80)
MIXTURE = Mixture(('in', 'gn', 'ln', 'bn'), num_groups=3, correction=0, eps=1e-5)
FORMATS = {'contiguous': torch.contiguous_format, 'channels_last': torch.channels_last}
QUANTITIES = (
    "the moments of 'bn'",
    'the output',
    'the gradient of the input',
    'the gradient of γ',
    'the gradient of β',
    'the gradient of λ',
    'the gradient of λ′',
)


def disagreement(passes: Passes, device: torch.device, dtype: torch.dtype) -> str | None:
    """Return what is wrong in a forward and a backward pass, or None.

    Both memory formats are compared, and each twice: what a backend keeps from a first call may
    change the second. Nothing global changes: random numbers have a state of their own.

    Args:
        passes: compute in float32 whatever the input's type.
        device: where they run.
        dtype: float32, float16 or bfloat16.
    """
    x, dy, *parameters = _inputs(dtype)
    exact = by_stages(aten)(*(tensor.double() for tensor in (x, dy, *parameters)))
    parameters = [parameter.to(device) for parameter in parameters]
    for name, memory_format in FORMATS.items():
        big = [t.to(device).contiguous(memory_format=memory_format) for t in (x, dy)]
        for _ in range(2):
            wrong = _difference(passes(*big, *parameters), exact)
            if wrong is not None:
                return f'{wrong} in {name} {dtype_name(dtype)}'
    return None


def by_stages(stages: Stages) -> Passes:
    """Return the passes that the stages of a backend make."""

    def passes(x: Tensor, dy: Tensor, *parameters: Tensor) -> Sequence[Tensor]:
        weight, bias, *controls = parameters
        instances, batch = stages.observe(x, MIXTURE, True)
        y, mixed = stages.normalize(x, instances, batch, (weight, bias), controls, MIXTURE)
        sums, channels = stages.sum_gradients(dy, x, mixed, weight)
        forward = Forward(instances, mixed, batch, weight, controls)
        d_batch = channels[2:] / len(x)
        dx, *d_controls = stages.input_gradients(dy, x, sums, forward, d_batch, MIXTURE, True)
        return batch, y, dx, *channels[:2], *d_controls

    return passes


def allowed_error(dtype: torch.dtype) -> float:
    """Return the largest error that counts as rounding, as a share of the largest value.

    The rounding to the type of the result may cost its ε. The arithmetic before it is in float32,
    and may cost the square root of float32's ε, 3.5e-4: right kernels stay far below that.
    """
    return torch.finfo(dtype).eps + torch.finfo(torch.float32).eps ** 0.5


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a type as users write it."""
    return str(dtype).removeprefix('torch.')


def _inputs(dtype: torch.dtype) -> list[Tensor]:
    """Return x, its upstream gradient, γ, β, λ and λ′ on the CPU; the last four in float32."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float32, device='cpu')

    samples, channels = SHAPE[:2]
    # Scopes differ where instances do; a gradient that follows the input leaves no sum near zero.
    x = draw(*SHAPE) * draw(samples, channels, 1, 1).div(3).exp() + draw(samples, channels, 1, 1)
    dy = draw(*SHAPE) + x
    sizes = (channels, channels, len(MIXTURE.scopes), len(MIXTURE.scopes))
    return [x.to(dtype), dy.to(dtype), *(draw(size) for size in sizes)]


def _difference(found: Sequence[Tensor], exact: Sequence[Tensor]) -> str | None:
    for quantity, value, expected in zip(QUANTITIES, found, exact, strict=True):
        distance = (value.cpu().double() - expected).abs().max()
        error = float(distance / expected.abs().max())
        if not error <= allowed_error(value.dtype):  # nor is NaN
            return f'the error of {quantity} is {error:.1e}'
    return None
