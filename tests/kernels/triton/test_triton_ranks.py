"""A rank that its GPU leaves to ATen trains beside one on Triton: they exchange the same tables."""

from importlib.util import find_spec

import pytest
import torch

from sn_openmmlab import SwitchNorm, SyncSwitchNorm
from sn_openmmlab.ops.backends import use_backend

BACKENDS = ('aten', 'triton')
CHANNELS = 3


def _batch():
    torch.manual_seed(0)
    return torch.randn(2, 3, CHANNELS, 2, 2) + 1, torch.randn(2, 3, CHANNELS, 2, 2)


def _outcome(layer, x, dy):
    torch.manual_seed(1)
    for parameter in layer.parameters():
        parameter.data.copy_(torch.randn(parameter.shape))
    x = x.clone().requires_grad_()
    y = layer(x)
    y.backward(dy)
    found = {'y': y.detach(), 'x': x.grad, **dict(layer.named_buffers())}
    return found | {name: parameter.grad for name, parameter in layer.named_parameters()}


def on_rank(rank, world):
    x, dy = _batch()
    with use_backend(BACKENDS[rank]):
        return _outcome(SyncSwitchNorm(CHANNELS), x[rank], dy[rank])


@pytest.mark.skipif(find_spec('triton') is None, reason='Triton is not installed')
def test_ranks_on_different_backends_are_one_process_on_the_whole_batch(run_ranks):
    ranks = run_ranks(__file__, 2, {'TRITON_INTERPRET': '1'})

    with use_backend('plain'):
        whole = (t.flatten(0, 1).double() for t in _batch())
        expected = _outcome(SwitchNorm(CHANNELS).double(), *whole)
    parts = {name: torch.cat([rank[name] for rank in ranks]) for name in ('x', 'y')}
    sums = {name: sum(rank[name] for rank in ranks) for name in _gradients_of(expected)}
    for name, value in (parts | sums).items():
        torch.testing.assert_close(value.double(), expected[name], rtol=1e-5, atol=1e-5)
    for name in ('running_mean', 'running_var', 'num_batches_tracked'):
        assert torch.equal(ranks[0][name], ranks[1][name])
        torch.testing.assert_close(ranks[0][name].to(expected[name]), expected[name])


def _gradients_of(outcome):
    return [name for name in outcome if name.endswith(('weight', 'bias'))]
