"""The sums over channels_last CPU tensors by torch's batch norm kernels: fewer calls, same values.

A single sample in channels_last is a batch of its own, and the statistics that batch norm takes of
it are those of the instance.
"""

import torch
from torch import Tensor

# Smaller samples are quicker in blocks of many.
LARGE_SAMPLE = 1 << 17
# The kernels add up one number after the other, which loses digits in longer columns.
PLAIN_SUM = 8192


def is_columns(x: Tensor, dtype: torch.dtype) -> bool:
    """Whether ``x``, (N, C, H, W), is on the CPU, of ``dtype`` and channels_last, N not 0."""
    large = x.dim() == 4 and x.shape[1:].numel() >= LARGE_SAMPLE and x.shape[0] > 0
    return (
        x.is_cpu
        and x.dtype == dtype
        and large
        and x.shape[3] <= PLAIN_SUM
        and x.is_contiguous(memory_format=torch.channels_last)
    )


def moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean of each instance and channel and the mean of the squared deviations, (N, C) each."""
    mean, var = zip(*(_sample_moments(x[n : n + 1]) for n in range(x.shape[0])), strict=True)
    return torch.stack(mean), torch.stack(var)


def sums(dy: Tensor, x: Tensor, centre: Tensor) -> tuple[Tensor, Tensor]:
    """``Σ dy`` and ``Σ dy·(x - centre)`` of each instance and channel, (N, C) each."""
    total, dot = torch.zeros_like(centre), torch.zeros_like(centre)
    ones = torch.ones_like(centre[0])
    for n in range(x.shape[0]):
        pairs = zip(_pieces(dy[n : n + 1]), _pieces(x[n : n + 1]), strict=True)
        for dy_piece, piece in pairs:
            _, piece_dot, piece_total = torch.ops.aten.native_batch_norm_backward(
                dy_piece,
                piece,
                ones,
                None,
                None,
                centre[n],
                ones,
                True,
                0.0,
                [False, True, True],
            )
            total[n] += piece_total
            dot[n] += piece_dot
    return total, dot


def _sample_moments(sample: Tensor) -> tuple[Tensor, Tensor]:
    pieces = _pieces(sample)
    shares = sample.new_tensor([piece.shape[2] / sample.shape[2] for piece in pieces]).unsqueeze(1)
    means, variances = (torch.stack(t) for t in zip(*map(_piece_moments, pieces), strict=True))
    mean = means[0] + (shares * (means - means[0])).sum(0)
    return mean, (shares * (means - mean).square_().add_(variances)).sum(0)


def _piece_moments(piece: Tensor) -> tuple[Tensor, Tensor]:
    """The kernel's variance is around its own mean, which is not so exact as torch's sum."""
    mean = piece.mean((0, 2, 3))
    rough_mean, rough_var = torch.ops.aten.batch_norm_update_stats(piece, None, None, 0.0)
    return mean, rough_var.addcmul_(rough_mean - mean, rough_mean - mean, value=-1).clamp_(min=0)


def _pieces(sample: Tensor) -> tuple[Tensor, ...]:
    return sample.split(max(PLAIN_SUM // sample.shape[3], 1), dim=2)
