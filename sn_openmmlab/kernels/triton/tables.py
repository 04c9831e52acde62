"""The arithmetic between the passes, on (N, C) tables, in float32.

See :mod:`sn_openmmlab.kernels.aten.tables` for the formulas and for the same functions made of ATen
calls. A program of :func:`mix` and :func:`position_gradients` takes the channels of one group of a
sample, or all of them without ``'gn'``, and pools what its scopes need by itself. Means are mixed
as distances from the instance mean: ratios that add up to 1 only nearly then cost no digits of a
large common offset.
"""

from torch import Tensor

from sn_openmmlab.kernels.contract import Mixture
from sn_openmmlab.kernels.triton.gradient_kernels import (
    channels_kernel,
    controls_kernel,
    positions_kernel,
)
from sn_openmmlab.kernels.triton.launch import block, blocks, launch
from sn_openmmlab.kernels.triton.merge import merge_moments, tile_of
from sn_openmmlab.kernels.triton.mix_kernel import mix_kernel
from sn_openmmlab.kernels.triton.pooling import MOST_SCOPES

Moments = tuple[Tensor, Tensor]
# Channels that a program has in registers at a time.
MOST_CHANNELS = 1024


def batch_moments(mean: Tensor, var: Tensor) -> Moments:
    """Mean and variance of ``'bn'`` from those of the instances, (C,) each."""
    samples = mean.shape[0]
    pooled = merge_moments(mean.unsqueeze(0), var.unsqueeze(0), 1, samples, 1.0)
    return pooled[0].squeeze(0), pooled[1].squeeze(0)


def mix(
    mean: Tensor,
    var: Tensor,
    batch: Moments,
    controls: Moments,
    mixture: Mixture,
) -> tuple[Tensor, Tensor]:
    """Return the mixed mean and ``1 / sqrt(mixed variance + ε)``, (N, C) each.

    Args:
        mean: of the instances, (N, C).
        var: of the instances, (N, C).
        batch: moments of ``'bn'``, (C,) each, or None twice where no scope needs them.
        controls: λ and λ′, (number of scopes,) each.
        mixture: the scopes, groups and ε.
    """
    centre, rstd = mean.new_empty((2, *mean.shape))
    programs, sizes, constants = _plan(mean, mixture)
    tables = (mean, var, *_vectors(*batch, *controls), centre, rstd)
    launch(mix_kernel, programs, *tables, *sizes, mixture.eps, **constants)
    return centre, rstd


def channel_gradients(
    total: Tensor, dot: Tensor, rstd: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor, Moments]:
    """Return the gradients of γ and β, and the sums over N of those of both mixes, (C,) each.

    Args:
        total: ``Σ dy`` over the positions, (N, C).
        dot: ``Σ dy·(x - centre)`` over the positions, (N, C).
        rstd: see :func:`mix`.
        weight: γ, (C,), or None for 1.
    """
    samples, channels = total.shape
    sums = total.new_empty((4, channels))
    tile = tile_of(samples)
    programs = blocks(channels, tile['COLUMNS'])
    tables = (total, dot, rstd, *_vectors(weight), *sums)
    launch(channels_kernel, programs, *tables, samples, channels, **tile)
    d_weight, d_bias, *d_batch = sums
    return d_weight, d_bias, tuple(d_batch)


def position_gradients(
    sums: Moments,
    instances: Moments,
    mixed: Moments,
    batch: Moments,
    batch_gradients: Moments | None,
    weight: Tensor | None,
    controls: Moments,
    mixture: Mixture,
    positions: tuple[int, int],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return what the statistics add to the gradient of ``x``, and the gradients of λ and λ′.

    Args:
        sums: ``total`` and ``dot`` of :func:`channel_gradients`.
        instances: mean and variance of the instances, (N, C) each.
        mixed: the results of :func:`mix`.
        batch: moments of ``'bn'``, (C,) each, or None twice.
        batch_gradients: the average over all samples of the gradients of both mixes, (C,) each;
            None where the moments of ``'bn'`` do not depend on the input.
        weight: γ, (C,), or None for 1.
        controls: λ and λ′.
        mixture: the scopes, groups and ε.
        positions: the number of positions, and the correction of the instances' variance.

    Returns:
        ``slope`` and ``offset`` of ``(x - centre) * slope + offset``, (N, C) each, in the type of
        the instances' moments, and the gradients of λ and λ′.
    """
    mean = instances[0]
    slope, offset = mean.new_empty((2, *mean.shape))
    programs, sizes, constants = _plan(mean, mixture)
    partials = mean.new_empty((2, programs, MOST_SCOPES.value))
    vectors = _vectors(*batch, *(batch_gradients or (None, None)), weight, *controls)
    tables = (*sums, *instances, *mixed, *vectors, slope, offset, *partials)
    count, correction = positions
    divisors = (float(count), max(count - correction, 1) / 2)
    launch(positions_kernel, programs, *tables, *sizes, *divisors, **constants)
    d_controls = mean.new_empty((2, len(mixture.scopes)))
    arguments = (*partials, *_vectors(*controls), *d_controls, programs)
    rows = block(programs, MOST_CHANNELS)
    launch(controls_kernel, 1, *arguments, SCOPES=len(mixture.scopes), ROWS=rows)
    return slope, offset, *d_controls


def _plan(mean: Tensor, mixture: Mixture) -> tuple[int, tuple[int, int], dict[str, int]]:
    """The number of programs; the channels of a sample and of a program; the constants."""
    samples, channels = mean.shape
    groups = mixture.num_groups if 'gn' in mixture.scopes else 1
    size = channels // groups
    places = {scope: place for place, scope in enumerate(mixture.scopes)}
    constants = {scope.upper(): places.get(scope, -1) for scope in ('in', 'gn', 'ln', 'bn')}
    constants |= {'SCOPES': len(mixture.scopes), 'BLOCK': block(size, MOST_CHANNELS)}
    return samples * groups, (channels, size), constants


def _vectors(*vectors: Tensor | None) -> list[Tensor | None]:
    return [None if vector is None else vector.contiguous() for vector in vectors]
