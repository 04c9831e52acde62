"""The toolboxes' ResNets with SN: freezing and zero initialization work as for BN."""

from importlib import import_module

import pytest
import torch

from sn_openmmlab.layers.switch_norm import SwitchNorm

TOOLBOXES = ['mmdet', 'mmseg', 'mmpretrain']
FROZEN = ('conv1.', 'sn1.', 'layer1.')  # stem and stage 1
CONTROLS = ('mean_weight', 'var_weight')


def _resnet(toolbox, depth, norm='SN', **options):
    backbones = import_module(f'{toolbox}.models.backbones')
    return backbones.ResNet(depth, norm_cfg={'type': norm, 'requires_grad': True}, **options)


def _norms(model):
    return {name: layer for name, layer in model.named_modules() if isinstance(layer, SwitchNorm)}


@pytest.fixture(params=[18, 50])
def depth(request):
    return request.param


@pytest.fixture(params=TOOLBOXES)
def frozen(request, depth):
    """Return a ResNet whose stem and first stage are frozen, after a training step's backward."""
    model = _resnet(request.param, depth, frozen_stages=1, norm_eval=False)
    model.train()
    model.before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    sum(output.square().mean() for output in model(torch.randn(2, 3, 32, 32))).backward()
    return model


def test_every_norm_is_sn_by_its_usual_name(frozen, depth):
    blocks, per_block = {18: (8, 2), 50: (16, 3)}[depth]
    shortcuts = {18: 3, 50: 4}[depth]

    norms = _norms(frozen)

    assert len(norms) == 1 + blocks * per_block + shortcuts
    assert not any('BatchNorm' in type(module).__name__ for module in frozen.modules())
    assert {'sn1', 'layer1.0.sn1', 'layer1.0.sn2', 'layer4.1.sn2'} <= norms.keys()


def test_frozen_stages_are_in_evaluation_and_the_others_in_training(frozen):
    for name, layer in _norms(frozen).items():
        assert layer.training == (not f'{name}.'.startswith(FROZEN)), name


def test_frozen_stages_have_no_gradients_and_the_others_do(frozen):
    for name, parameter in frozen.named_parameters():
        if name.startswith(FROZEN):
            assert not parameter.requires_grad and parameter.grad is None, name
        else:
            assert parameter.grad.isfinite().all(), name
    controls = [value for name, value in frozen.named_parameters() if name.endswith(CONTROLS)]
    assert len(controls) == 2 * len(_norms(frozen))
    assert any(value.grad.abs().sum() > 0 for value in controls if value.requires_grad)


def test_running_statistics_of_frozen_stages_stay_and_the_others_move(frozen):
    assert frozen.before
    for name, buffer in frozen.named_buffers():
        assert torch.equal(buffer, frozen.before[name]) == name.startswith(FROZEN), name


@pytest.mark.parametrize('toolbox', TOOLBOXES)
def test_exactly_the_parameters_that_bn_freezes_are_frozen_and_lambda_with_them(toolbox):
    sn, bn = (
        {
            name.replace(f'{kind.lower()}1', 'norm1').replace(f'{kind.lower()}2', 'norm2')
            for name, parameter in _resnet(toolbox, 18, kind, frozen_stages=2).named_parameters()
            if not parameter.requires_grad
        }
        for kind in ('SN', 'BN')
    )

    controls = {name for name in sn if name.endswith(CONTROLS)}
    assert sn - controls == bn
    assert len(controls) == 2 * (1 + 4 + 4 + 1)  # the stem, two stages of two blocks, a shortcut


@pytest.mark.parametrize('toolbox', TOOLBOXES)
def test_evaluating_batch_norms_leaves_sn_in_training(toolbox):
    # `norm_eval` freezes the statistics of BatchNorms only.
    model = _resnet(toolbox, 18, frozen_stages=-1, norm_eval=True)
    model.train()

    assert all(layer.training for layer in _norms(model).values())


@pytest.mark.parametrize('toolbox', TOOLBOXES)
@pytest.mark.parametrize('zero_init_residual', [True, False])
def test_zero_init_residual_zeroes_gamma_of_each_blocks_last_norm_alone(
    toolbox, depth, zero_init_residual
):
    model = _resnet(toolbox, depth, zero_init_residual=zero_init_residual)
    model.init_weights()

    last = {18: '.sn2', 50: '.sn3'}[depth]
    for name, layer in _norms(model).items():
        gamma = 0.0 if zero_init_residual and name.endswith(last) else 1.0
        assert torch.equal(layer.weight, torch.full_like(layer.weight, gamma)), name
        assert torch.equal(layer.bias, torch.zeros_like(layer.bias)), name
        for control in (layer.mean_weight, layer.var_weight):
            assert torch.equal(control, torch.ones(3)), name
