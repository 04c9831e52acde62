"""torch's `fully_shard` trains SN as DistributedDataParallel does."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

from sn_openmmlab import SwitchNorm, SyncSwitchNorm
from sn_openmmlab.errors import UsageError
from sn_openmmlab.hooks.non_finite_guard_hook import NonFiniteGuardHook

fsdp = pytest.importorskip('torch.distributed.fsdp')
pytestmark = pytest.mark.skipif(not hasattr(fsdp, 'fully_shard'), reason='torch is too old')
KINDS = dict(SN=SwitchNorm, SyncSN=SyncSwitchNorm)


def _network(kind: type[SwitchNorm]) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 5, 1, bias=False), kind(5), nn.ReLU(), nn.Conv2d(5, 1, 1))


def _train(network: nn.Module, rank: int) -> list[float]:
    """Return the losses of this rank in steps on its own images."""
    optimizer = torch.optim.SGD(network.parameters(), 0.1, momentum=0.9)
    generator = torch.Generator().manual_seed(rank)
    losses = []
    for _ in range(4):
        loss = network(torch.randn(2, 2, 4, 3, generator=generator)).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return losses


def _state(network: nn.Module) -> dict[str, torch.Tensor]:
    full = {
        name: value.full_tensor() if hasattr(value, 'full_tensor') else value
        for name, value in network.state_dict().items()
    }
    return {name: value.detach().clone() for name, value in full.items()}


def _compare(kind: type[SwitchNorm], rank: int, mesh: Any) -> dict[str, Any]:
    """Return losses, states and the sizes of the parts of SN on this rank, both ways."""
    found: dict[str, Any] = {}
    for name, param_dtype in (('float32', None), ('bfloat16', torch.bfloat16)):
        policy = fsdp.MixedPrecisionPolicy(param_dtype=param_dtype)
        network = _network(kind)
        for part in (network[0], network[1], network):
            fsdp.fully_shard(part, mesh=mesh, mp_policy=policy)
        parts = {key: x.to_local().numel() for key, x in network[1].named_parameters()}
        found[name] = dict(losses=_train(network, rank), state=_state(network), parts=parts)
    with pytest.raises(UsageError) as refused:
        NonFiniteGuardHook().before_train(SimpleNamespace(model=network))
    network = _network(kind)
    losses = _train(DistributedDataParallel(network, broadcast_buffers=False), rank)
    return dict(found, ddp=dict(losses=losses, state=_state(network)), guard=str(refused.value))


def on_rank(rank: int, world: int) -> dict[str, dict[str, Any]]:
    mesh = init_device_mesh('cpu', (world,))
    return {name: _compare(kind, rank, mesh) for name, kind in KINDS.items()}


@pytest.fixture(scope='module')
def ranks(run_ranks: Any) -> list[dict[str, dict[str, Any]]]:
    """Return what two ranks hold after their trainings."""
    return run_ranks(__file__, 2)


@pytest.mark.parametrize('kind', KINDS)
def test_it_trains_bit_for_bit_as_ddp(kind: str, ranks: list) -> None:
    for rank in ranks:
        for part in ('losses', 'state'):
            pair = (rank[kind]['float32'][part], rank[kind]['ddp'][part])
            torch.testing.assert_close(*pair, rtol=0, atol=0)


@pytest.mark.parametrize('kind', KINDS)
def test_parameters_are_divided(kind: str, ranks: list) -> None:
    parts = [rank[kind]['float32']['parts'] for rank in ranks]
    assert parts[0] == dict(weight=3, bias=3, mean_weight=2, var_weight=2)
    assert parts[1] == dict(weight=2, bias=2, mean_weight=1, var_weight=1)


@pytest.mark.parametrize('kind', KINDS)
def test_mixed_precision_keeps_statistics_in_float32(kind: str, ranks: list) -> None:
    for rank in ranks:
        mixed, whole = rank[kind]['bfloat16'], rank[kind]['ddp']
        assert mixed['state']['1.running_mean'].dtype == torch.float32
        torch.testing.assert_close(mixed, {**whole, 'parts': mixed['parts']}, rtol=0.03, atol=0.01)


def test_the_guard_refuses_it(ranks: list) -> None:
    for rank in ranks:
        assert 'cannot look into a model that FSDP has divided: train with' in rank['SN']['guard']
