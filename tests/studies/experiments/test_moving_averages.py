"""The averages beside the layers against layers with those momenta."""

from collections.abc import Callable
from copy import deepcopy

import pytest
import torch
from torch import nn

from sn_openmmlab import SwitchNorm
from studies.experiments.moving_averages import MovingAverages

NORMS = [nn.BatchNorm2d, SwitchNorm]
MOMENTA = (0.1, 0.003)


@pytest.fixture(params=NORMS, ids=lambda norm: norm.__name__)
def network(request: pytest.FixtureRequest) -> nn.Module:
    """Two layers with running statistics, the second of which is called twice."""
    torch.manual_seed(0)
    shared = request.param(3)
    return nn.Sequential(
        nn.Conv2d(3, 3, 1), request.param(3), nn.Conv2d(3, 3, 1), shared, nn.ReLU(), shared
    )


def statistics(network: nn.Module) -> list[torch.Tensor]:
    return [
        table for layer in (network[1], network[3]) for table in layer.buffers() if table.ndim == 1
    ]


@pytest.fixture
def trained_with(network: nn.Module) -> Callable[[float], nn.Module]:
    """A function of a momentum -> a copy whose layers have it and saw the batches of `batches`."""

    def train(momentum: float) -> nn.Module:
        copied = deepcopy(network)
        for layer in (copied[1], copied[3]):
            layer.momentum = momentum
        for batch in batches():
            copied(batch)
        return copied

    return train


def batches() -> torch.Tensor:
    return torch.randn(5, 2, 3, 4, 4, generator=torch.Generator().manual_seed(1)) * 3 + 2


def test_averages_are_those_of_layers_with_each_momentum(
    network: nn.Module, trained_with: Callable
) -> None:
    expected = {momentum: statistics(trained_with(momentum)) for momentum in MOMENTA}
    averages = MovingAverages(network, MOMENTA)
    for batch in batches():
        network(batch)
    for momentum in (*MOMENTA, MOMENTA[0]):
        averages.load(momentum)
        for found, wanted in zip(statistics(network), expected[momentum], strict=True):
            torch.testing.assert_close(found, wanted)


def test_batches_of_evaluation_and_of_a_pause_do_not_count(
    network: nn.Module, trained_with: Callable
) -> None:
    expected = statistics(trained_with(0.1))
    averages = MovingAverages(network, MOMENTA)
    for batch in batches():
        network(batch)
        last = [table.clone() for table in statistics(network)]
        with averages.paused():
            averages.load(0.1)
            network(batch + 5)
        assert all(map(torch.equal, statistics(network), last))
        network.eval()
        network(batch - 5)
        network.train()
    averages.load(0.1)
    for found, wanted in zip(statistics(network), expected, strict=True):
        torch.testing.assert_close(found, wanted)
