"""The arithmetic between the passes, on (N, C) tables, in float32.

Pairs of tables are tuples or stacked; see `kernels/contract.py` for them, and `aten/tables.py` for
the equations of the gradients. A program of `mix` and `position_gradients` takes channels of a
sample that are in the same groups, or all channels, and pools by itself what its scopes need. Means
are mixed as distances from the instance mean: then ratios that do not add up to exactly 1 lose no
digits of a large common offset.
"""

import math

from torch import Tensor

from sn_openmmlab.kernels.contract import Mixture, Moments
from sn_openmmlab.kernels.triton import FUSED_SCOPES, tuning
from sn_openmmlab.kernels.triton.gradient_kernels import (
    channels_kernel,
    controls_kernel,
    positions_kernel,
)
from sn_openmmlab.kernels.triton.launch import block, blocks, launch
from sn_openmmlab.kernels.triton.merge import merge_moments, tile_of
from sn_openmmlab.kernels.triton.mix_kernel import mix_kernel
from sn_openmmlab.kernels.triton.ratios import MOST_SCOPES


def batch_moments(mean: Tensor, var: Tensor) -> Tensor:
    """Return mean and variance of `'bn'`, (2, C), from those of the instances."""
    samples = mean.shape[0]
    return merge_moments(mean.unsqueeze(0), var.unsqueeze(0), 1, samples, 1.0).squeeze(1)


def mix(
    mean: Tensor, var: Tensor, batch: Moments | None, controls: Moments, mixture: Mixture
) -> Tensor:
    """Return the mixed mean and `1 / sqrt(mixed variance + ε)`, (2, N, C)."""
    mixed = mean.new_empty((2, *mean.shape))
    programs, sizes, constants = _plan(mean, controls, mixture)
    tables = (mean, var, *_vectors(*_pair(batch), *controls), *mixed)
    launch(mix_kernel, programs, *tables, *sizes, mixture.eps, **constants)
    return mixed


def channel_gradients(total: Tensor, dot: Tensor, rstd: Tensor, weight: Tensor | None) -> Tensor:
    """Return the gradients of γ and β, and those of both mixes summed over N, (4, C)."""
    samples, channels = total.shape
    sums = total.new_empty((4, channels))
    tile = tile_of(samples)
    programs = blocks(channels, tile['COLUMNS'])
    tables = (total, dot, rstd, *_vectors(weight), *sums)
    launch(channels_kernel, programs, *tables, samples, channels, **tile)
    return sums


def position_gradients(
    sums: Moments,
    instances: Moments,
    mixed: Moments,
    batch: Moments | None,
    batch_gradients: Moments | None,
    weight: Tensor | None,
    controls: Moments,
    mixture: Mixture,
    positions: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return what the statistics add to the gradient of `x`, and the gradients of λ and λ′."""
    mean = instances[0]
    slope, offset = mean.new_empty((2, *mean.shape))
    programs, sizes, constants = _plan(mean, controls, mixture)
    partials = mean.new_empty((2, programs, MOST_SCOPES.value))
    vectors = _vectors(*_pair(batch), *_pair(batch_gradients), weight, *controls)
    tables = (*sums, *instances, *mixed, *vectors, slope, offset, *partials)
    divisors = (float(positions), max(positions - mixture.correction, 1) / 2)
    launch(positions_kernel, programs, *tables, *sizes, *divisors, **constants)
    d_controls = mean.new_empty((2, *controls[0].shape))
    groups = _ratio_groups(controls)
    channels, size, *_ = sizes
    strides = channels // size
    layout = (programs // groups, strides // groups, strides)
    arguments = (*partials, *_vectors(*controls), *d_controls, *layout)
    rows = block(programs // groups, tuning.MOST_CHANNELS)
    launch(controls_kernel, groups, *arguments, SCOPES=len(mixture.scopes), ROWS=rows)
    return slope, offset, *d_controls


def _plan(
    mean: Tensor, controls: Moments, mixture: Mixture
) -> tuple[int, tuple[int, int, int, int], dict[str, int]]:
    """Return the number of programs, the sizes, and the constants.

    The sizes are the channels of a sample, of a program, of a group of `'gn'`, and of those that
    share their ratios.
    """
    samples, channels = mean.shape
    group = channels // (mixture.num_groups if 'gn' in mixture.scopes else 1)
    share = channels // _ratio_groups(controls)
    size = math.gcd(group, share)
    places = {scope: place for place, scope in enumerate(mixture.scopes)}
    constants = {scope.upper(): places.get(scope, -1) for scope in FUSED_SCOPES}
    constants |= {'SCOPES': len(mixture.scopes), 'BLOCK': block(size, tuning.MOST_CHANNELS)}
    return samples * (channels // size), (channels, size, group, share), constants


def _ratio_groups(controls: Moments) -> int:
    return len(controls[0]) if controls[0].dim() == 2 else 1


def _pair(pair: Moments | Tensor | None) -> Moments | Tensor:
    return (None, None) if pair is None else pair


def _vectors(*vectors: Tensor | None) -> list[Tensor | None]:
    return [None if vector is None else vector.contiguous() for vector in vectors]
