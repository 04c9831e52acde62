"""How well a network with BatchNorm keeps its predictions when it is converted to SN."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sn_openmmlab.layers.convert.calibration import calibrate_switch_norm
from sn_openmmlab.layers.convert.from_batch_norm import convert_batch_norm
from sn_openmmlab.layers.switch_norm import SwitchNorm
from studies.experiments.efficientnet_lite import pretrained_network, read_images
from studies.presentation.markdown import table

FITTED_TO = 96
_SCOPES = ('in', 'ln', 'bn')
_BATCH = 26


@dataclass(frozen=True)
class Start:
    """The ratios of the SN layers in a converted network.

    Attributes:
        mean: the ratios w of in, ln, bn.
        var: the ratios w′.
        fitted: whether `calibrate_switch_norm` is applied.
    """

    mean: tuple[float, float, float]
    var: tuple[float, float, float]
    fitted: bool = False


@dataclass(frozen=True)
class Kept:
    """How close a converted network is to the one with BatchNorm, on given images.

    Attributes:
        start: its ratios.
        agreement: the share of images with the same most likely class.
        divergence: the Kullback-Leibler divergence of its class probabilities from those of
            BatchNorm, in nats, averaged over the images.
    """

    start: Start
    agreement: float
    divergence: float


def starts() -> Iterator[Start]:
    """Yield starts: ratios of `'bn'`, plain and fitted, then a tenth of one scope or statistic."""
    alone = (0.0, 0.0, 1.0)
    for ratio in (1, 0.999, 0.99, 0.97, 0.95, 0.9, 0.6, 1 / 3):
        even = ((1 - ratio) / 2, (1 - ratio) / 2, ratio)
        yield Start(even, even)
        if ratio < 1:
            yield Start(even, even, fitted=True)
    tenth = (0.05, 0.05, 0.9)
    yield Start(tenth, alone)
    yield Start(alone, tenth)
    for share in ((0.1, 0.0, 0.9), (0.0, 0.1, 0.9)):
        yield Start(share, share)


def measure_kept(folder: Path) -> list[Kept]:
    """Compare the starts on the photographs of a folder; the first 96 are used for fitting."""
    images = read_images(folder)
    seen, new = images[:FITTED_TO], images[FITTED_TO:]
    wanted = _log_probabilities(pretrained_network().eval(), new)
    found = []
    for start in starts():
        given = _log_probabilities(_converted(start, seen), new)
        agreement = (given.argmax(1) == wanted.argmax(1)).double().mean().item()
        divergence = F.kl_div(given, wanted, log_target=True, reduction='batchmean').item()
        found.append(Kept(start, agreement, divergence))
    return found


def kept_table(found: Sequence[Kept]) -> str:
    """Return a row per start: its ratios, the agreement in percent, and the divergence."""
    titles = ['w of in, ln, bn', 'w′ of in, ln, bn', 'fitted']
    columns = {
        'same class (%)': lambda group: f'{100 * group[0].agreement:.1f}',
        'divergence': lambda group: f'{group[0].divergence:.3f}',
    }
    return table(found, titles, lambda kept: _cells(kept.start), columns)


def _converted(start: Start, seen: Tensor) -> nn.Module:
    network = convert_batch_norm(pretrained_network().eval(), 1, _SCOPES)
    for layer in network.modules():
        if isinstance(layer, SwitchNorm):
            layer.mean_weight.data = _controls(start.mean)
            layer.var_weight.data = _controls(start.var)
    return calibrate_switch_norm(network, seen) if start.fitted else network


def _controls(ratios: Sequence[float]) -> Tensor:
    # exp(-100) is 0 beside 1 in float32.
    return torch.tensor(ratios).log().clamp(min=-100)


@torch.no_grad()
def _log_probabilities(network: nn.Module, images: Tensor) -> Tensor:
    return torch.cat([network(part).double().log_softmax(1) for part in images.split(_BATCH)])


def _cells(start: Start) -> tuple[str, str, str]:
    return _shown(start.mean), _shown(start.var), 'yes' if start.fitted else 'no'


def _shown(ratios: Sequence[float]) -> str:
    return ', '.join(f'{ratio:.4g}' for ratio in ratios)
