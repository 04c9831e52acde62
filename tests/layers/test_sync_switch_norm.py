"""SyncSN in one process works as SN, for torch, mmengine and mmcv as well."""

import copy
import pickle

import pytest
import torch
import torch.distributed as dist
from mmcv.cnn import build_norm_layer, fuse_conv_bn, is_norm
from mmengine.model import convert_sync_batchnorm, revert_sync_batchnorm
from mmengine.optim import build_optim_wrapper
from torch import nn

from sn_openmmlab import SwitchNorm, SyncSwitchNorm


@pytest.fixture
def lone_group():
    """Set up a process group with one rank, as training on one GPU does."""
    dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture
def model(randomized):
    return nn.Sequential(nn.Conv2d(3, 4, 3), randomized(SyncSwitchNorm(4)), nn.BatchNorm2d(4))


def _pair(randomized, **options):
    sync, plain = SyncSwitchNorm(4, **options), SwitchNorm(4, **options)
    plain.load_state_dict(randomized(sync).state_dict())
    return sync, plain


def _same(sync, plain, outcome):
    for train in (True, False):
        x, grad = torch.randn(2, 3, 4, 5, 6)
        found = outcome(sync.train(train), x, grad)
        expected = outcome(plain.train(train), x, grad)
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
        torch.testing.assert_close(sync.state_dict(), plain.state_dict(), rtol=0, atol=0)


OPTIONS = [
    {},
    {'scopes': ('gn', 'bn'), 'num_groups': 2, 'correction': 1, 'momentum': None},
    {'affine': False, 'track_running_stats': False, 'eps': 0.1},
]


@pytest.mark.parametrize('options', OPTIONS, ids=str)
def test_without_a_process_group_it_is_sn_bit_for_bit(options, randomized, outcome):
    assert not dist.is_initialized()
    _same(*_pair(randomized, **options), outcome)


def test_with_one_rank_it_is_sn_bit_for_bit(lone_group, randomized, outcome):
    _same(*_pair(randomized), outcome)


def test_its_checkpoints_are_those_of_sn(randomized):
    sync, plain = _pair(randomized)

    assert list(sync.state_dict()) == list(plain.state_dict())
    sync.load_state_dict(randomized(plain).state_dict())
    torch.testing.assert_close(sync.state_dict(), plain.state_dict(), rtol=0, atol=0)


@pytest.mark.parametrize('copied', [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_is_independent_and_equal(copied, randomized):
    layer = randomized(SyncSwitchNorm(4, scopes=('bn', 'in'), momentum=None)).eval()
    twin = copied(layer)

    assert type(twin) is SyncSwitchNorm and twin.process_group is None
    x = torch.randn(2, 4, 3, 3)
    assert torch.equal(twin(x), layer(x))
    nn.init.zeros_(twin.weight)
    assert layer.weight.any()


@pytest.mark.parametrize('wrong', [[0, 1], 'gloo', 2])
def test_an_invalid_process_group_gives_one_sentence(wrong):
    with pytest.raises(TypeError, match=r'^process_group must be None, .* not .*\.$'):
        SyncSwitchNorm(4, process_group=wrong)


def test_it_reads_the_arguments_of_sn():
    layer = SyncSwitchNorm(8, 0.1, 0.2, False, scopes=('gn', 'bn'), num_groups=4, correction=1)

    assert (layer.num_features, layer.eps, layer.momentum, layer.affine) == (8, 0.1, 0.2, False)
    assert (layer.scopes, layer.num_groups, layer.correction) == (('gn', 'bn'), 4, 1)
    with pytest.raises(ValueError, match='unknown scope'):
        SyncSwitchNorm(8, scopes=('bm',))


def test_mmcv_builds_it_and_mmengine_spares_it_weight_decay():
    name, layer = build_norm_layer({'type': 'SyncSN', 'momentum': 0.3}, 8, postfix=1)
    wrapper = build_optim_wrapper(
        nn.Sequential(layer),
        {
            'optimizer': {'type': 'SGD', 'lr': 0.1, 'weight_decay': 0.1},
            'paramwise_cfg': {'norm_decay_mult': 0.0},
        },
    )

    assert (name, type(layer), layer.momentum) == ('sn1', SyncSwitchNorm, 0.3)
    assert is_norm(layer)
    decays = [group['weight_decay'] for group in wrapper.param_groups if group['params']]
    assert decays == [0, 0, 0, 0]


REWRITES = {
    'sync_bn': lambda model: convert_sync_batchnorm(model, 'torch'),
    'torchs_sync_bn': nn.SyncBatchNorm.convert_sync_batchnorm,
    'reverted_sync_bn': revert_sync_batchnorm,
    'fusion': lambda model: fuse_conv_bn(model.eval()),
}


@pytest.mark.parametrize('name', REWRITES)
def test_tools_that_rewrite_batch_norms_leave_it_alone(name, model):
    layer, state = model[1], copy.deepcopy(model[1].state_dict())

    rewritten = REWRITES[name](model)

    assert rewritten[1] is layer and type(layer) is SyncSwitchNorm
    torch.testing.assert_close(layer.state_dict(), state, rtol=0, atol=0)


def test_it_compiles_as_one_graph(model):
    model = model[:2]
    x = torch.randn(2, 3, 8, 8)
    compiled = torch.compile(copy.deepcopy(model), backend='aot_eager', fullgraph=True)

    torch.testing.assert_close(compiled(x), model(x))
