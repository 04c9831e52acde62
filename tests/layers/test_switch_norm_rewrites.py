"""Tools that rewrite the BatchNorms of a model leave the layer alone."""

import copy

import pytest
import torch
from mmcv.cnn import fuse_conv_bn, is_norm
from mmengine.model import convert_sync_batchnorm, revert_sync_batchnorm
from torch import nn

from sn_openmmlab.layers.switch_norm import SwitchNorm


@pytest.fixture
def model(randomized):
    """Return convolution and SN, then convolution and BN to show that the rewrite happens."""
    return nn.Sequential(
        nn.Sequential(nn.Conv2d(3, 4, 3), randomized(SwitchNorm(4))),
        nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4)),
    ).eval()


@pytest.fixture
def only_sn(model):
    return model[0]


def _to_torch(model):
    return convert_sync_batchnorm(model, 'torch')


def _to_torch_and_back(model):
    return revert_sync_batchnorm(convert_sync_batchnorm(model, 'torch'))


REWRITES = {
    'sync_bn': (_to_torch, nn.SyncBatchNorm),
    'torchs_sync_bn': (nn.SyncBatchNorm.convert_sync_batchnorm, nn.SyncBatchNorm),
    'fusion': (fuse_conv_bn, nn.Identity),
}


@pytest.mark.parametrize('name', REWRITES)
def test_the_batch_norm_is_rewritten_and_sn_is_the_same_object(name, model):
    rewrite, becomes = REWRITES[name]
    sn, state = model[0][1], copy.deepcopy(model[0].state_dict())
    x = torch.randn(2, 3, 8, 8)
    before = model[0](x)

    rewritten = rewrite(model)

    assert isinstance(rewritten[1][1], becomes)
    assert rewritten[0][1] is sn and type(sn) is SwitchNorm
    torch.testing.assert_close(rewritten[0].state_dict(), state, rtol=0, atol=0)
    assert torch.equal(rewritten[0](x), before)


@pytest.mark.parametrize(
    'rewrite', [revert_sync_batchnorm, _to_torch_and_back], ids=['revert', 'there_and_back']
)
def test_reverting_leaves_sn_the_same_object(rewrite, model):
    sn, x = model[0][1], torch.randn(2, 3, 8, 8)
    before = model(x)

    reverted = rewrite(model).eval()  # for mmengine's conversion puts the BN in training

    assert not any(isinstance(module, nn.SyncBatchNorm) for module in reverted.modules())
    assert reverted[0][1] is sn and type(sn) is SwitchNorm
    torch.testing.assert_close(reverted(x), before)


def test_mmcvs_sync_bn_leaves_it_the_same_object(only_sn):
    # No BN in this model: mmcv's SyncBatchNorm cannot be built outside of a process group.
    sn, x = only_sn[1], torch.randn(2, 3, 8, 8)
    before = only_sn(x)

    converted = convert_sync_batchnorm(only_sn, 'mmcv')

    assert converted[1] is sn and type(sn) is SwitchNorm
    assert torch.equal(converted(x), before)


def test_mmcv_recognises_it_as_a_norm_layer_but_not_as_a_batch_norm():
    assert is_norm(SwitchNorm(4))
    assert not is_norm(SwitchNorm(4), exclude=SwitchNorm)
