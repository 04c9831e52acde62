"""The contract between the fused op and its backends: four stages, two in each direction.

Between the stages the op exchanges with other processes what `'bn'` needs. Tables are in the
statistics' type: float32 for half-precision inputs, else the input's type. A pair of tables is
stacked in one tensor.

    instances   (2, N, C)   mean and variance of each channel of each sample
    batch       (2, C)      mean and variance of `'bn'`
    mixed       (2, N, C)   the mixed mean, and 1 / sqrt(mixed variance + ε)
    sums        (2, N, C)   Σ dy and Σ dy·(x - mixed mean) over the positions

With P_k for the average over what scope k pools, the moments of the scope are

    μ_k = P_k μ        σ_k² = P_k (σ² + (μ - μ_k)²)

The second is the law of total variance: the value of Eq. 4 without its difference of two large
numbers. The layer normalizes by the mixes of these moments (Eq. 3 and 5).
"""

from typing import NamedTuple, Protocol

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


class Forward(NamedTuple):
    """What the backward pass needs to know of the forward pass, besides the input.

    Attributes:
        instances: (2, N, C).
        mixed: (2, N, C).
        batch: (2, C), or None where `'bn'` is not mixed.
        weight: γ, (C,), or None for 1.
        controls: λ and λ′, (number of scopes,) each; or (G, number of scopes) for G equal groups of
            channels with ratios of their own.
    """

    instances: Tensor
    mixed: Tensor
    batch: Tensor | None
    weight: Tensor | None
    controls: Moments


class Stages(Protocol):
    """The four stages. Big tensors are of shape (N, C, *) and of any strides."""

    def observe(
        self, x: Tensor, mixture: Mixture, wants_batch: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Return `instances` (the first line of Eq. 4) and `batch` of `x` (None unless wanted).

        Means and variances are 0 where there are no positions; variances are 0 where the mixture
        does not need them.
        """

    def normalize(
        self,
        x: Tensor,
        instances: Tensor,
        batch: Tensor | None,
        affine: tuple[Tensor | None, Tensor | None],
        controls: Moments,
        mixture: Mixture,
    ) -> tuple[Tensor, Tensor]:
        """Return the output, in the type and memory format of `x`, and `mixed`.

        Args:
            x: (N, C, *).
            instances: from `observe`.
            batch: the moments of `'bn'` to use, or None where it is not mixed.
            affine: γ and β, (C,) each, or None for 1 and 0.
            controls: λ and λ′; see `Forward`.
            mixture: what to mix.
        """

    def sum_gradients(
        self, dy: Tensor, x: Tensor, mixed: Tensor, weight: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return `sums`, and what they say of the channels, (4, C).

        The four are the gradients of γ and β, and those of both mixes summed over the samples.

        Args:
            dy: the gradient of the output, (N, C, *).
            x: the input, (N, C, *).
            mixed: from `normalize`.
            weight: γ, (C,), or None for 1.
        """

    def input_gradients(
        self,
        dy: Tensor,
        x: Tensor,
        sums: Tensor,
        forward: Forward,
        batch_gradients: Tensor | None,
        mixture: Mixture,
        wants_x: bool,
    ) -> tuple[Tensor | None, Tensor, Tensor]:
        """Return the gradients of `x` (None unless wanted), λ and λ′.

        Args:
            dy: the gradient of the output, (N, C, *).
            x: the input, (N, C, *), with at least one position.
            sums: from `sum_gradients`.
            forward: what the forward pass found.
            batch_gradients: the gradients of both mixes averaged over all samples, (2, C); None
                where the moments of `'bn'` do not depend on the input.
            mixture: what was mixed.
            wants_x: whether the gradient of `x` is asked for.
        """
