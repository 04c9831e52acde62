"""`norm_eval` keeps a layer in evaluation mode, whatever mode its model is in."""

import copy
import pickle

import pytest
import torch
from torch import nn

from sn_openmmlab.layers.convert.from_batch_norm import convert_batch_norm
from sn_openmmlab.layers.convert.sync import convert_sync_switch_norm, revert_sync_switch_norm
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm

KINDS = [SwitchNorm, SyncSwitchNorm]


def _same(layer):
    return layer


def _pickled(layer):
    return pickle.loads(pickle.dumps(layer))


def _synced(layer):
    return convert_sync_switch_norm(layer)


def _reverted(layer):
    return revert_sync_switch_norm(convert_sync_switch_norm(layer))


@pytest.mark.parametrize('change', [_same, copy.deepcopy, _pickled, _synced, _reverted])
@pytest.mark.parametrize('kind', KINDS)
def test_training_changes_neither_output_nor_statistics(kind, change, randomized):
    layer = randomized(kind(4, norm_eval=True))
    x = torch.randn(2, 4, 3, 3)
    usual = randomized(SwitchNorm(4)).eval()
    usual.load_state_dict(layer.state_dict())
    before = copy.deepcopy(layer.state_dict())

    model = nn.Sequential(change(layer)).train()

    assert not model[0].training
    for _ in range(2):
        torch.testing.assert_close(model(x), usual(x), rtol=0, atol=0)
    torch.testing.assert_close(model[0].state_dict(), before, rtol=0, atol=0)


@pytest.mark.parametrize('kind', KINDS)
def test_a_new_layer_evaluates_before_any_mode_was_set(kind):
    layer = kind(4, norm_eval=True)

    assert not layer.training
    layer(torch.randn(2, 4, 3, 3))
    assert layer.num_batches_tracked == 0


@pytest.mark.parametrize('mode', [True, False])
def test_without_norm_eval_the_mode_is_the_one_that_was_set(mode):
    layer = SwitchNorm(4)

    assert layer.training
    assert layer.train(mode) is layer and layer.training is mode


def test_parameters_train_unless_they_are_frozen_too(randomized):
    layer = randomized(SwitchNorm(4, norm_eval=True))

    layer(torch.randn(2, 4, 3, 3)).square().sum().backward()

    assert all(parameter.grad.any() for parameter in layer.parameters())


def test_converted_layers_train():
    model = convert_batch_norm(nn.Sequential(nn.BatchNorm2d(4), nn.SyncBatchNorm(4)))

    assert [layer.train().training for layer in model] == [True, True]
    assert not any('norm_eval' in repr(layer) for layer in model)


def test_the_description_names_it_only_where_it_is_set():
    assert 'norm_eval' not in repr(SwitchNorm(4))
    assert repr(SwitchNorm(4, norm_eval=True)).endswith('correction=0, norm_eval=True)')


def test_checkpoints_fit_with_and_without_it():
    frozen, usual = SwitchNorm(4, norm_eval=True), SwitchNorm(4)

    frozen.load_state_dict(usual.state_dict())
    usual.load_state_dict(frozen.state_dict())


def test_a_config_freezes_the_whole_layer():
    build_norm_layer = pytest.importorskip('mmcv.cnn').build_norm_layer

    for kind in ('SN', 'SyncSN'):
        cfg = {'type': kind, 'requires_grad': False, 'norm_eval': True}
        _, layer = build_norm_layer(cfg, 4)
        before = copy.deepcopy(layer.state_dict())

        layer.train()(torch.randn(2, 4, 3, 3))

        assert not any(parameter.requires_grad for parameter in layer.parameters())
        torch.testing.assert_close(layer.state_dict(), before, rtol=0, atol=0)
