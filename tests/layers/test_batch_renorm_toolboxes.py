"""BatchRenorm under mmcv, mmengine and DistributedDataParallel, beside BatchNorm."""

import copy

import pytest
import torch
from mmcv.cnn import build_norm_layer, fuse_conv_bn, is_norm
from mmengine.model import convert_sync_batchnorm
from mmengine.optim import build_optim_wrapper
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from sn_openmmlab import BatchRenorm, convert_batch_norm

FULL = dict(begin=0, r_end=0, d_end=0)
REWRITES = {
    'sync_bn': lambda model: convert_sync_batchnorm(model, 'torch'),
    'torchs_sync_bn': nn.SyncBatchNorm.convert_sync_batchnorm,
    'fusion': fuse_conv_bn,
    'convert_batch_norm': convert_batch_norm,
}


@pytest.fixture
def model(randomized):
    """Return BatchRenorm after a convolution, and the same with BatchNorm."""
    norms = (randomized(BatchRenorm(4)), nn.BatchNorm2d(4))
    return nn.Sequential(*(nn.Sequential(nn.Conv2d(4, 4, 1), norm) for norm in norms)).eval()


@pytest.mark.parametrize('name', REWRITES)
def test_what_rewrites_batch_norm_leaves_it_alone(name, model):
    layer, state = model[0][1], copy.deepcopy(model[0].state_dict())
    rewritten = REWRITES[name](model)
    assert type(rewritten[1][1]) is not nn.BatchNorm2d
    assert rewritten[0][1] is layer and type(layer) is BatchRenorm
    torch.testing.assert_close(rewritten[0].state_dict(), state, rtol=0, atol=0)


def test_its_weights_in_batch_norm_fold_into_the_convolution(model):
    model[1].load_state_dict(model[0].state_dict())
    x = torch.randn(2, 4, 3, 3)
    folded = fuse_conv_bn(copy.deepcopy(model[1]))
    assert isinstance(folded[1], nn.Identity)
    torch.testing.assert_close(folded(x), model[0](x))


def test_norm_decay_mult_reaches_it(model):
    optimizer = dict(type='SGD', lr=0.1, weight_decay=1e-4)
    cfg = dict(optimizer=optimizer, paramwise_cfg=dict(norm_decay_mult=0.0))
    groups = build_optim_wrapper(model[0], cfg).param_groups
    decays = {id(value): group['weight_decay'] for group in groups for value in group['params']}
    found = {name: decays[id(value)] for name, value in model[0].named_parameters()}
    assert found == {'0.weight': 1e-4, '0.bias': 1e-4, '1.weight': 0.0, '1.bias': 0.0}


def test_mmcv_knows_it_as_a_norm_and_names_it_as_batch_norm():
    name, layer = build_norm_layer(dict(type='BRN', begin=7, requires_grad=False), 4, postfix=1)
    assert (name, layer.begin, is_norm(layer)) == ('bn1', 7, True)
    assert not any(p.requires_grad for p in layer.parameters())


@pytest.mark.slow
def test_compiled_exported_and_traced_it_gives_the_same():
    layer, other = (BatchRenorm(3, begin=1, r_end=3, d_end=3) for _ in range(2))
    compiled = torch.compile(other, backend='eager', fullgraph=True)
    for _ in range(4):
        x = torch.randn(2, 3, 4, 4) * 3 + 1
        torch.testing.assert_close(compiled(x), layer(x))
    torch.testing.assert_close(other.state_dict(), layer.state_dict())
    layer.eval()
    for graph in (torch.export.export(layer, (x,)).module(), torch.jit.trace(layer, x)):
        torch.testing.assert_close(graph(x), layer(x))


def on_rank(rank, world):
    """Train two steps under DDP, which copies the first rank's buffers before each or does not."""
    found = {}
    for broadcast in (True, False):
        torch.manual_seed(0)
        layer = BatchRenorm(3, momentum=0.5, dtype=torch.float64, **FULL)
        model = DistributedDataParallel(layer, broadcast_buffers=broadcast)
        batches = torch.randn(2, world, 4, 3, dtype=torch.float64) * 2 + 1
        for batch in batches:
            y = model(batch[rank])
        found[broadcast] = (batches, y.detach(), layer.running_mean, layer.num_batches_tracked)
    return found


@pytest.mark.slow
def test_each_rank_has_its_own_batch_and_with_broadcast_buffers_the_first_ones_averages(run_ranks):
    outcomes = run_ranks(__file__, 2)
    for broadcast in (True, False):
        for rank, outcome in enumerate(outcomes):
            batches, y, running_mean, count = outcome[broadcast]
            alone = BatchRenorm(3, momentum=0.5, dtype=torch.float64, **FULL)
            alone(batches[0, 0 if broadcast else rank])
            torch.testing.assert_close(y, alone(batches[1, rank]))
            torch.testing.assert_close(running_mean, alone.running_mean)
            assert count == 2
