"""One batch normalized as several GPUs would is what as many processes compute."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import nn

from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.batch_renorm import BatchRenorm
from sn_openmmlab.layers.switch_norm import SwitchNorm
from studies.experiments.simulated_gpus import SimulatedBN, SimulatedBRN, SimulatedSN

GROUPS = dict(scopes=('in', 'gn', 'bn'), num_groups=2)
CASES = {
    'sn': (SimulatedSN, SwitchNorm, {}),
    'sn-gn': (SimulatedSN, SwitchNorm, GROUPS),
    'sn-correction': (SimulatedSN, SwitchNorm, dict(correction=1)),
    'bn': (SimulatedBN, nn.BatchNorm2d, {}),
    # At the final bounds from the second batch on.
    'brn': (SimulatedBRN, BatchRenorm, dict(begin=1, r_end=1, d_end=1)),
}


@pytest.mark.parametrize('gpus', [1, 2, 4])
@pytest.mark.parametrize('case', CASES)
def test_outputs_and_gradients_are_those_of_each_gpu(case: str, gpus: int) -> None:
    """The layer itself on each GPU's images, and the sum of the gradients."""
    simulated, plain, settings = CASES[case]
    torch.manual_seed(0)
    layer = simulated(4, gpus=gpus, **settings).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    each = [plain(4, **settings).double() for _ in range(gpus)]
    for one in each:
        one.load_state_dict(layer.state_dict())
    x, weights = torch.randn(8, 4, 3, 3).double().add(1), torch.randn(8, 4, 3, 3).double()
    y = layer(x)
    (y * weights).sum().backward()
    for gpu, one in enumerate(each):
        found = one(x[gpu::gpus])
        torch.testing.assert_close(y[gpu::gpus], found)
        (found * weights[gpu::gpus]).sum().backward()
    for name, parameter in layer.named_parameters():
        total = sum(one.get_parameter(name).grad for one in each)
        torch.testing.assert_close(parameter.grad, total)
    for name in ('running_mean', 'running_var'):
        average = torch.stack([one.get_buffer(name) for one in each]).mean(0)
        torch.testing.assert_close(layer.get_buffer(name), average)
    assert layer.num_batches_tracked == 1
    torch.testing.assert_close(layer.eval()(x), _evaluate(plain, settings, layer, x))


def _evaluate(
    plain: type[nn.Module], settings: dict, layer: nn.Module, x: torch.Tensor
) -> torch.Tensor:
    one = plain(4, **settings).double()
    one.load_state_dict(layer.state_dict())
    return one.eval()(x)


@pytest.mark.parametrize('layer', [SimulatedSN, SimulatedBN, SimulatedBRN])
def test_images_that_gpus_cannot_share_are_refused(layer: type[nn.Module]) -> None:
    with pytest.raises(UsageError, match='2 GPUs cannot share 3 images'):
        layer(4, gpus=2)(torch.randn(3, 4, 2, 2))


def test_two_kinds_of_groups_of_channels_are_refused() -> None:
    with pytest.raises(UsageError, match="'ln' or 'gn'"):
        SimulatedSN(4, gpus=2, scopes=('ln', 'gn'), num_groups=2)


NETWORKS = {
    'sn': (SimulatedSN, SwitchNorm),
    'bn': (SimulatedBN, nn.BatchNorm2d),
}


def network(norm: Callable) -> nn.Module:
    """Return the same small network each time, with a norm."""
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 4, 3), norm(4), nn.ReLU(), nn.Conv2d(4, 4, 3), norm(4), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(16, 2)).double()


def train(model: nn.Module, rank: int = 0, world: int = 1) -> list[torch.Tensor]:
    """Train for three steps on the images of a rank; return the parameters and buffers."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(3):
        torch.manual_seed(step)
        x, labels = torch.randn(8, 3, 6, 6).double(), torch.randint(2, (8,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rank::world]), labels[rank::world]).backward()
        optimizer.step()
    return [tensor.detach() for tensor in model.state_dict().values()]


def on_rank(rank: int, world: int) -> dict[str, list[torch.Tensor]]:
    """Train the networks with the real layers, in DDP."""
    return {
        name: train(
            nn.parallel.DistributedDataParallel(network(plain), broadcast_buffers=False),
            rank,
            world,
        )
        for name, (_, plain) in NETWORKS.items()
    }


def test_two_processes_train_the_same_network(run_ranks: Callable) -> None:
    """Three steps in two processes, and in one that simulates them."""
    ranks = run_ranks(__file__, 2)
    for name, (simulated, _) in NETWORKS.items():
        found = train(network(partial(simulated, gpus=2)))
        for mine, *theirs in zip(found, *(rank[name] for rank in ranks), strict=True):
            torch.testing.assert_close(mine.double(), torch.stack(theirs).double().mean(0))
