"""The layer as a module: parameters, buffers, state, copies and its description."""

import copy
import io

import pytest
import torch
from torch import nn

from sn_openmmlab.layers.switch_norm import SwitchNorm


def test_the_default_layer_has_the_documented_parameters_and_buffers():
    layer = SwitchNorm(5)

    parameters = {name: value.tolist() for name, value in layer.named_parameters()}
    buffers = {name: value.tolist() for name, value in layer.named_buffers()}
    assert parameters == {
        'weight': [1.0] * 5,
        'bias': [0.0] * 5,
        'mean_weight': [1.0] * 3,
        'var_weight': [1.0] * 3,
    }
    assert buffers == {
        'running_mean': [0.0] * 5,
        'running_var': [1.0] * 5,
        'num_batches_tracked': 0,
    }
    assert layer.scopes == ('in', 'ln', 'bn')
    assert (layer.eps, layer.momentum, layer.correction) == (1e-5, 0.1, 0)


def test_the_toolboxes_recognise_it_as_a_norm_but_not_as_a_batch_norm():
    layer = SwitchNorm(5)

    assert isinstance(layer, nn.modules.instancenorm._InstanceNorm)
    assert not isinstance(layer, nn.modules.batchnorm._BatchNorm)
    assert SwitchNorm._abbr_ == 'sn'


def test_affine_false_leaves_gamma_and_beta_out(paper, randomized):
    layer = randomized(SwitchNorm(3, affine=False, dtype=torch.float64))
    x = torch.randn(2, 3, 4, 4, dtype=torch.float64)

    assert [name for name, _ in layer.named_parameters()] == ['mean_weight', 'var_weight']
    assert layer.weight is None and layer.bias is None
    torch.testing.assert_close(layer(x), paper(layer, x))


@pytest.mark.parametrize(
    'options', [{'track_running_stats': False}, {'scopes': ('in', 'ln')}, {'scopes': ['ln']}]
)
def test_without_tracking_or_batch_scope_there_are_no_running_statistics(options):
    layer = SwitchNorm(3, **options)

    assert dict(layer.named_buffers()) == {}
    assert layer.running_mean is layer.running_var is layer.num_batches_tracked is None
    assert not layer.track_running_stats


def test_without_tracking_evaluation_uses_the_batch(paper, randomized):
    layer = randomized(SwitchNorm(3, track_running_stats=False, dtype=torch.float64)).eval()
    x = torch.randn(2, 3, 4, 4, dtype=torch.float64)

    torch.testing.assert_close(layer(x), paper(layer, x))


def test_reset_parameters_restores_the_first_state(randomized):
    layer = randomized(SwitchNorm(3))
    layer(torch.randn(2, 3, 4, 4))

    layer.reset_parameters()

    fresh = SwitchNorm(3).state_dict()
    assert all(torch.equal(value, fresh[name]) for name, value in layer.state_dict().items())


def test_parameters_and_buffers_take_the_given_device_and_type():
    layer = SwitchNorm(3, device='meta', dtype=torch.float64)

    tensors = [*layer.parameters(), layer.running_mean, layer.running_var]
    assert all(tensor.is_meta and tensor.dtype == torch.float64 for tensor in tensors)


@pytest.mark.parametrize('scopes', [('in', 'ln', 'bn'), ('in', 'ln'), ('gn', 'bn')])
def test_a_copy_computes_the_same_and_is_independent(scopes, randomized):
    layer = randomized(SwitchNorm(4, scopes=scopes, num_groups=2))
    x = torch.randn(2, 4, 3, 3)
    twin = copy.deepcopy(layer).eval()
    expected = layer.eval()(x)

    assert torch.equal(twin(x), expected)

    randomized(twin)
    assert torch.equal(layer(x), expected)


@pytest.mark.parametrize('scopes', [('in', 'ln', 'bn'), ('in', 'ln'), ('gn', 'bn')])
@pytest.mark.parametrize('affine', [True, False])
def test_the_state_survives_a_file(scopes, affine, randomized):
    options = {'scopes': scopes, 'num_groups': 2, 'affine': affine}
    layer = randomized(SwitchNorm(4, **options))
    layer(torch.randn(2, 4, 3, 3))
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    other = SwitchNorm(4, **options)

    other.load_state_dict(torch.load(file, weights_only=True), strict=True)

    x = torch.randn(2, 4, 3, 3)
    assert torch.equal(other.eval()(x), layer.eval()(x))
    for name, value in layer.state_dict().items():
        assert torch.equal(other.state_dict()[name], value), name


def test_strict_loading_names_missing_and_unexpected_keys():
    with_batch, without_batch = SwitchNorm(4), SwitchNorm(4, track_running_stats=False)

    with pytest.raises(RuntimeError, match=r'Unexpected key.*"running_mean", "running_var"'):
        without_batch.load_state_dict(with_batch.state_dict())
    with pytest.raises(RuntimeError, match=r'Missing key.*"running_mean", "running_var"'):
        with_batch.load_state_dict(without_batch.state_dict())
    with pytest.raises(RuntimeError, match='size mismatch for running_mean'):
        with_batch.load_state_dict(SwitchNorm(5).state_dict(), strict=False)


def test_a_state_from_before_batches_were_counted_loads_strictly():
    layer, old = SwitchNorm(4), SwitchNorm(4).state_dict()
    del old['num_batches_tracked']
    old = dict(old)  # without the version that torch notes

    layer.load_state_dict(old, strict=True)

    assert layer.num_batches_tracked.item() == 0


@pytest.mark.parametrize('training', [True, False])
@pytest.mark.parametrize('order', [(2, 0, 3, 1), (3, 2, 1, 0)])
def test_the_order_of_the_scopes_only_orders_the_control_parameters(training, order, randomized):
    scopes = ('in', 'gn', 'ln', 'bn')
    layer = randomized(SwitchNorm(4, scopes=scopes, num_groups=2, dtype=torch.float64))
    other = SwitchNorm(4, scopes=[scopes[k] for k in order], num_groups=2, dtype=torch.float64)
    state = dict(layer.state_dict())  # without the record of the scopes
    for name in ('mean_weight', 'var_weight'):
        state[name] = state[name][list(order)]
    other.load_state_dict(state)
    x = torch.randn(2, 4, 3, 3, dtype=torch.float64)

    torch.testing.assert_close(other.train(training)(x), layer.train(training)(x))


def test_importance_ratios_are_the_softmax_of_each_set_of_control_parameters():
    layer = SwitchNorm(4, dtype=torch.float64)
    with torch.no_grad():
        layer.mean_weight.copy_(torch.tensor([1.0, 2.0, 4.0]).log())
        layer.var_weight.copy_(torch.tensor([5.0, 3.0, 2.0]).log())

    mean_ratios, var_ratios = layer.importance_ratios()

    torch.testing.assert_close(mean_ratios, torch.tensor([1.0, 2.0, 4.0]) / 7)
    torch.testing.assert_close(var_ratios, torch.tensor([0.5, 0.3, 0.2]))
    assert not mean_ratios.requires_grad and not var_ratios.requires_grad


def test_the_description_names_what_the_layer_was_made_with():
    # The middle part is torch's, and differs between its versions.
    usual = repr(SwitchNorm(4))
    assert usual.startswith('SwitchNorm(4, eps=1e-05, momentum=0.1, affine=True, ')
    assert usual.endswith("track_running_stats=True, scopes=('in', 'ln', 'bn'), correction=0)")

    other = repr(SwitchNorm(4, 1e-3, None, False, scopes=['gn'], num_groups=2, correction=1))
    assert other.startswith('SwitchNorm(4, eps=0.001, momentum=None, affine=False, ')
    assert other.endswith("track_running_stats=False, scopes=('gn',), correction=1, num_groups=2)")


def test_the_input_is_left_as_it_was():
    x = torch.randn(2, 4, 3, 3)
    before = x.clone()

    SwitchNorm(4)(x)

    assert torch.equal(x, before)
