"""The sums over channels_last CPU tensors by torch's batch norm kernels: fewer calls, same values.

Batch norm's statistics of a batch that holds one sample are the moments of that instance.
"""

import torch
from torch import Tensor

from sn_openmmlab.kernels.merge import merge_moments

# Elements from which a sample is worth a call of its own.
LARGE_SAMPLE = 1 << 17
# Longest column to sum: the kernels add one number after the other, which loses digits.
PLAIN_SUM = 8192


def is_columns(x: Tensor, dtype: torch.dtype) -> bool:
    """Return whether `x` is a channels_last (N, C, H, W) of type `dtype` on the CPU, with N > 0."""
    large = x.dim() == 4 and x.shape[1:].numel() >= LARGE_SAMPLE and x.shape[0] > 0
    return (
        x.is_cpu
        and x.dtype == dtype
        and large
        and x.shape[3] <= PLAIN_SUM
        and x.is_contiguous(memory_format=torch.channels_last)
    )


def moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return each instance's mean and mean squared deviation from it, (N, C) each."""
    mean, var = zip(*(_sample_moments(x[n : n + 1]) for n in range(x.shape[0])), strict=True)
    return torch.stack(mean), torch.stack(var)


def sums(dy: Tensor, x: Tensor, centre: Tensor) -> tuple[Tensor, Tensor]:
    """Return `Σ dy` and `Σ dy·(x - centre)` of each instance and channel, (N, C) each."""
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
    return merge_moments(means, variances, shares)


def _piece_moments(piece: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and variance, (C,) each, of one piece.

    The kernel's mean is less exact than torch's, so its variance is moved to torch's mean.
    """
    mean = piece.mean((0, 2, 3))
    rough_mean, rough_var = torch.ops.aten.batch_norm_update_stats(piece, None, None, 0.0)
    return mean, rough_var.addcmul_(rough_mean - mean, rough_mean - mean, value=-1).clamp_(min=0)


def _pieces(sample: Tensor) -> tuple[Tensor, ...]:
    return sample.split(max(PLAIN_SUM // sample.shape[3], 1), dim=2)
