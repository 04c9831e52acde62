"""The contract between the fused op and its backends: what `passes.py` and `tables.py` provide.

Tables are (N, C) in the statistics' type: float32 for half-precision inputs, else the input's type.
"""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

Moments = tuple[Tensor, Tensor]
"""A mean and a variance, or a value for each of the two, such as λ and λ′."""


class Mixture(NamedTuple):
    """What a layer mixes, and how.

    Attributes:
        scopes: the scopes in the order of their control parameters.
        num_groups: the number of groups of `'gn'`.
        correction: the instance variance divides by the number of positions less this, at least by
            one (0: Eq. 2; 1: the authors' code).
        eps: ε of Eq. 3.
        instance_variance: False where the variance is that of given moments of `'bn'` alone, so
            that the variances of the instances need not be computed.
    """

    scopes: tuple[str, ...]
    num_groups: int
    correction: int
    eps: float
    instance_variance: bool = True


class Passes(Protocol):
    """The four passes over tensors of shape (N, C, *), of any strides."""

    def instance_moments(self, x: Tensor, correction: int, dtype: torch.dtype) -> Moments:
        """Return mean and variance of each channel of each sample: the first line of Eq. 4.

        Args:
            x: (N, C, *).
            correction: see `Mixture`.
            dtype: the statistics' type.

        Returns:
            Mean and variance, (N, C) each; 0 where there are no positions.
        """

    def normalize(self, x: Tensor, centre: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
        """Return `(x - centre) * scale + bias` in the type and memory format of `x`.

        Args:
            x: (N, C, *).
            centre: the mixed mean, (N, C).
            scale: γ over the mixed standard deviation, (N, C).
            bias: β, (C,), in the statistics' type, or None for 0.
        """

    def gradient_sums(self, dy: Tensor, x: Tensor, centre: Tensor) -> tuple[Tensor, Tensor]:
        """Return `Σ dy` and `Σ dy·(x - centre)` over the positions, (N, C) each.

        Args:
            dy: the gradient of the output, (N, C, *).
            x: the input, (N, C, *).
            centre: the mixed mean, (N, C).
        """

    def input_gradient(
        self,
        dy: Tensor,
        x: Tensor,
        centre: Tensor,
        scale: Tensor,
        slope: Tensor,
        offset: Tensor,
    ) -> Tensor:
        """Return `dy * scale + (x - centre) * slope + offset` in the type and format of `x`.

        Args:
            dy: the gradient of the output, (N, C, *).
            x: the input, (N, C, *).
            centre: the mixed mean, (N, C).
            scale: γ over the mixed standard deviation, (N, C).
            slope: from `Tables.position_gradients`, (N, C).
            offset: from `Tables.position_gradients`, (N, C).
        """


class Tables(Protocol):
    """The arithmetic between the passes, on (N, C) tables.

    With P_k for the average over what scope k pools, the moments of the scope are

        μ_k = P_k μ        σ_k² = P_k (σ² + (μ - μ_k)²)

    The second is the law of total variance: the value of Eq. 4 without its difference of two large
    numbers. The layer normalizes by the mixes of these moments (Eq. 3 and 5).
    """

    def batch_moments(self, mean: Tensor, var: Tensor) -> Moments:
        """Return mean and variance of `'bn'`, (C,) each, from those of the instances, (N, C)."""

    def mix(
        self,
        mean: Tensor,
        var: Tensor,
        batch: Moments | None,
        controls: Moments,
        mixture: Mixture,
    ) -> tuple[Tensor, Tensor]:
        """Return the mixed mean and `1 / sqrt(mixed variance + ε)`, (N, C) each.

        Args:
            mean: of the instances, (N, C).
            var: of the instances, (N, C).
            batch: moments of `'bn'`, (C,) each; None where it is not mixed.
            controls: λ and λ′, (number of scopes,) each; or (G, number of scopes) for G equal
                groups of channels with ratios of their own.
            mixture: what to mix.
        """

    def channel_gradients(
        self, total: Tensor, dot: Tensor, rstd: Tensor, weight: Tensor | None
    ) -> tuple[Tensor, Tensor, Moments]:
        """Return the gradients of γ and β, and those of both mixes summed over N, (C,) each.

        Args:
            total: `Σ dy` over the positions, (N, C).
            dot: `Σ dy·(x - centre)` over the positions, (N, C).
            rstd: from `mix`, (N, C).
            weight: γ, (C,), or None for 1.
        """

    def position_gradients(
        self,
        sums: tuple[Tensor, Tensor],
        instances: Moments,
        mixed: tuple[Tensor, Tensor],
        batch: Moments | None,
        batch_gradients: Moments | None,
        weight: Tensor | None,
        controls: Moments,
        mixture: Mixture,
        positions: int,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return what the statistics add to the gradient of `x`, and the gradients of λ and λ′.

        Args:
            sums: `total` and `dot` of `channel_gradients`, (N, C) each.
            instances: mean and variance of the instances, (N, C) each.
            mixed: the results of `mix`, (N, C) each.
            batch: moments of `'bn'`, (C,) each; None where it is not mixed.
            batch_gradients: the gradients of both mixes averaged over all samples, (C,) each; None
                where the moments of `'bn'` do not depend on the input.
            weight: γ, (C,), or None for 1.
            controls: λ and λ′, as of `mix`.
            mixture: what was mixed.
            positions: the number of positions, at least 1.

        Returns:
            `slope` and `offset` of `(x - centre) * slope + offset`, (N, C) each, and the gradients
            of λ and λ′, in their shapes.
        """


class Kernels(NamedTuple):
    """One backend of the fused op."""

    passes: Passes
    tables: Tables
