"""Remark 1 of the paper, measured: how IN, LN, BN and SN scale the filters before them."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, lgamma, sqrt

import torch
from torch import Tensor
from torch.nn.functional import unfold

from sn_openmmlab import SwitchNorm
from studies.demo.backgrounds import load_photograph

NORMS = {'IN': ('in',), 'BN': ('bn',), 'LN': ('ln',)}
LENGTHS = (0.5, 1.0, 2.0)
BATCHES = (2, 4, 8, 16, 32, 64)
# Both are CC0.
PHOTOGRAPHS = ('chelsea.png', 'coffee.png')
# The paper takes ε as zero.
_EPS = 1e-12
_SAMPLES, _SIZE, _POSITIONS = 4, 27, 400


@dataclass(frozen=True)
class Length:
    """The length of a filter after a norm with γ = 1.

    Attributes:
        norm: `'IN'`, `'BN'`, `'LN'` or `'SN'`.
        share: w′_ln, the share of LN in the variance.
        before: ‖w_i‖, the length of the filter itself.
        measured: by the layer.
        exact: by Eq. 2 and 3.
        paper: by Remark 1.
        paper_sum: by the sum w_in ĥ_in + w_bn ĥ_bn + w_ln ĥ_ln that Remark 1 starts from.
    """

    norm: str
    share: float
    before: float
    measured: float
    exact: float
    paper: float
    paper_sum: float


@dataclass(frozen=True)
class Gamma:
    """The γ that fits a linear target best behind BN, over the v that fits it behind WN.

    Attributes:
        batch: M, the values per channel that BN normalizes together.
        measured: with the layer.
        exact: the expected standard deviation of M normal values.
    """

    batch: int
    measured: float
    exact: float


@dataclass(frozen=True)
class Assumption:
    """The shortest and the longest filter after IN and after BN, on one kind of patches."""

    patches: str
    instance: tuple[float, float]
    batch: tuple[float, float]


def white_patches(samples: int, size: int, positions: int) -> Tensor:
    """Return random patches, (samples, size, positions), that are white in each sample.

    Over the positions of a sample each entry has zero mean and unit variance, and no two entries
    are correlated.
    """
    patches = torch.randn(samples, positions, size, dtype=torch.float64)
    columns, _ = torch.linalg.qr(patches - patches.mean(1, keepdim=True))
    return sqrt(positions) * columns.mT


def filters_of(lengths: Sequence[float], size: int) -> Tensor:
    """Return filters, (number of lengths, size), of random directions."""
    directions = torch.randn(len(lengths), size, dtype=torch.float64)
    scale = torch.tensor(lengths, dtype=torch.float64) / directions.norm(dim=1)
    return scale[:, None] * directions


def lengths_after(layer: SwitchNorm, filters: Tensor, patches: Tensor) -> Tensor:
    """Return the length of each filter after a layer in each sample, (samples, filters)."""
    responses = filters @ patches
    scale = layer(responses).std(-1) / responses.std(-1)
    return (scale * filters.norm(dim=1)).detach()


def exact_divisor(lengths: Tensor, share: float) -> Tensor:
    """Return σ of Eq. 3 on white patches: LN's variance is the mean of the squared lengths."""
    squares = lengths.square()
    return ((1 - share) * squares + share * squares.mean()).sqrt()


def papers_divisor(lengths: Tensor, share: float) -> Tensor:
    """Return the divisor of Remark 1, ‖w_i‖ + w_ln Σ_{j≠i} ‖w_j‖."""
    return lengths + share * (lengths.sum() - lengths)


def measure_lengths(shares: Sequence[float]) -> list[Length]:
    """Measure IN, BN and LN, and SN with each share of LN, on white patches."""
    patches = white_patches(_SAMPLES, _SIZE, _POSITIONS)
    filters = filters_of(LENGTHS, _SIZE)
    alone = {name: _layer(len(filters), scopes) for name, scopes in NORMS.items()}
    layers = [(name, float(name == 'LN'), layer) for name, layer in alone.items()]
    layers += [('SN', share, _mixing_layer(len(filters), share)) for share in shares]
    rows = []
    for name, share, layer in layers:
        measured = lengths_after(layer, filters, patches).mean(0)
        rows += _rows(name, share, torch.tensor(LENGTHS, dtype=torch.float64), measured)
    return rows


def measure_gammas(repeats: int = 100_000) -> list[Gamma]:
    """Fit γ of BN and v of WN by least squares to y = h, over batches of normal values h.

    Each channel of the layer is a batch of its own. BN's output has a mean square of 1 in every
    batch, so the best γ is the mean of its product with y.
    """
    return [Gamma(m, _best_gamma(m, repeats), expected_deviation(m)) for m in BATCHES]


def expected_deviation(count: int) -> float:
    """Return the expected standard deviation (divided by n) of standard normal values."""
    return sqrt(2 / count) * exp(lgamma(count / 2) - lgamma((count - 1) / 2))


def measure_assumptions(count: int = 64) -> list[Assumption]:
    """Measure IN and BN on patches that are white in different senses."""
    white = white_patches(_SAMPLES, _SIZE, _POSITIONS)
    together = white_patches(1, _SIZE, _SAMPLES * 16)
    per_batch = together.reshape(_SIZE, _SAMPLES, 16).transpose(0, 1)
    kinds = {
        'white in each image': white,
        'white over the batch': per_batch,
        'of photographs, zero mean and unit variance': photograph_patches(),
    }
    filters = filters_of([1.0] * count, _SIZE)
    return [
        Assumption(kind, *(_range(filters, patches, scopes) for scopes in (('in',), ('bn',))))
        for kind, patches in kinds.items()
    ]


def photograph_patches() -> Tensor:
    """Return 3×3 patches of two photographs, each entry normalized over the patches of both."""
    photographs = [load_photograph('skimage.data', name) for name in PHOTOGRAPHS]
    images = torch.stack([torch.from_numpy(pixels[:300, :450].copy()) for pixels in photographs])
    patches = unfold(images.permute(0, 3, 1, 2).double(), 3)
    centred = patches - patches.mean((0, 2), keepdim=True)
    return centred / centred.square().mean((0, 2), keepdim=True).sqrt()


def _layer(channels: int, scopes: Sequence[str]) -> SwitchNorm:
    return SwitchNorm(channels, eps=_EPS, scopes=scopes, dtype=torch.float64)


def _mixing_layer(channels: int, share: float) -> SwitchNorm:
    """Return SN whose variance takes a share of LN, and what is left equally of IN and BN."""
    layer = _layer(channels, ('in', 'ln', 'bn'))
    ratios = torch.tensor([(1 - share) / 2, share, (1 - share) / 2])
    layer.var_weight.data = ratios.clamp(1e-300).log().double()
    return layer


def _rows(name: str, share: float, before: Tensor, measured: Tensor) -> list[Length]:
    exact, paper = (before / divisor(before, share) for divisor in (exact_divisor, papers_divisor))
    paper_sum = (1 - share) + share * before / papers_divisor(before, 1)
    columns = (column.tolist() for column in (before, measured, exact, paper, paper_sum))
    return [Length(name, share, *values) for values in zip(*columns, strict=True)]


def _best_gamma(batch: int, repeats: int) -> float:
    h = torch.randn(batch, repeats, dtype=torch.float64)
    return ((_layer(repeats, ('bn',))(h) * h).mean() / h.square().mean()).item()


def _range(filters: Tensor, patches: Tensor, scopes: Sequence[str]) -> tuple[float, float]:
    lengths = lengths_after(_layer(len(filters), scopes), filters, patches)
    return lengths.min().item(), lengths.max().item()
