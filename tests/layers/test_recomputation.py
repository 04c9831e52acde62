"""Activation checkpointing repeats forward passes, which must not move running statistics again."""

import copy
import warnings

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.batch_renorm import BatchRenorm
from sn_openmmlab.layers.recomputation import is_recomputation
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm
from tests.backends import ON_CPU

STEPS = 3
NORMS = {
    'SN': lambda: SwitchNorm(4),
    'the average of all batches': lambda: SwitchNorm(4, momentum=None),
    'bn alone': lambda: SwitchNorm(4, scopes=('bn',)),
    'groups of ratios': lambda: SwitchNorm(4, num_ratio_groups=2),
    'sparse': lambda: _sparse(),
    'SyncSN': lambda: SyncSwitchNorm(4),
}


def _sparse() -> SwitchNorm:
    layer = SwitchNorm(4)
    layer.choose(torch.tensor(0), torch.tensor(2))  # Variances of the batch.
    return layer


class Repeated(nn.Module):
    """A module that is run again in the backward pass."""

    def __init__(self, module: nn.Module, use_reentrant: bool) -> None:
        super().__init__()
        self.module = module
        self.use_reentrant = use_reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.module, x, use_reentrant=self.use_reentrant)


def train(block: nn.Module) -> dict[str, torch.Tensor]:
    """Return the state of the module inside and its gradients after a few steps."""
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.SGD(block.parameters(), lr=0.1, momentum=0.9)
    for _ in range(STEPS):
        optimizer.zero_grad()
        # Images that need gradients, as features of a network do.
        x = torch.randn(2, 3, 6, 6, generator=generator, requires_grad=True)
        block(x).square().sum().backward()
        optimizer.step()
    module = getattr(block, 'module', block)
    gradients = {f'gradient of {n}': p.grad for n, p in module.named_parameters()}
    return {**module.state_dict(), **gradients, 'gradient of x': x.grad}


@pytest.mark.parametrize('backend', ON_CPU)
@pytest.mark.parametrize('use_reentrant', [True, False])
@pytest.mark.parametrize('norm', NORMS)
def test_a_repeated_block_trains_as_without(norm, use_reentrant, backend, set_environment):
    set_environment(backend=backend)
    block = nn.Sequential(nn.Conv2d(3, 4, 3), NORMS[norm](), nn.ReLU(), nn.Conv2d(4, 2, 1))
    expected = train(copy.deepcopy(block))

    found = train(Repeated(block, use_reentrant))

    assert found['1.num_batches_tracked'] == STEPS
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


@pytest.mark.parametrize('use_reentrant', [True, False])
def test_in_evaluation_it_uses_the_running_statistics_both_times(use_reentrant, randomized):
    layer = randomized(SwitchNorm(3)).eval()
    x = torch.randn(2, 3, 5, 5, requires_grad=True)
    expected = torch.autograd.grad(layer(x).square().sum(), x)[0]

    layer_repeated = Repeated(layer, use_reentrant)
    layer_repeated(x).square().sum().backward()

    assert torch.equal(x.grad, expected)


def test_only_a_backward_pass_is_one():
    seen = []
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda gradient: seen.append(is_recomputation()))
    seen.append(is_recomputation())
    y.sum().backward()
    with torch.no_grad():
        seen.append(is_recomputation())
    assert seen == [False, True, False]


@pytest.mark.parametrize('use_reentrant', [True, False])
def test_batch_renorm_is_refused_in_one_sentence(use_reentrant):
    block = nn.Sequential(nn.Conv2d(3, 4, 3), BatchRenorm(4))
    with pytest.raises(UsageError, match='BRN cannot train with activation checkpointing'):
        train(Repeated(block, use_reentrant))
    train(Repeated(block.eval(), use_reentrant))


def test_a_compiled_block_counts_each_batch_once():
    block = nn.Sequential(nn.Conv2d(3, 4, 3), SwitchNorm(4), nn.ReLU())
    expected = train(copy.deepcopy(block))
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        found = train(torch.compile(Repeated(block, False), backend='aot_eager'))
    assert found['1.num_batches_tracked'] == STEPS
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value)
