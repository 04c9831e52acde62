"""BatchNorm layers become SN in place, and compute the same as before in evaluation."""

import copy

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils.parametrize import is_parametrized, register_parametrization

from sn_openmmlab import SwitchNorm, SyncSwitchNorm, convert_batch_norm

KINDS = [nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm]


class AnyBatchNorm(_BatchNorm):
    """Like mmengine's replacement of SyncBN, which only drops the check of the input."""

    def _check_input_dim(self, input):
        return


class OurBatchNorm(nn.BatchNorm2d):
    """A BatchNorm that computes something else."""

    def forward(self, input):
        return -super().forward(input)


@pytest.fixture
def trained():
    """Return a function that gives a BatchNorm values as after training, in float64."""

    def fill(layer):
        layer.double()
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.copy_(torch.randn(parameter.shape))
            if layer.running_mean is not None:
                layer.running_mean.copy_(torch.randn(layer.num_features))
                layer.running_var.copy_(torch.rand(layer.num_features) + 0.5)
                layer.num_batches_tracked.fill_(7)
        return layer

    return fill


def _mix(layer, ratio, x):
    """Return SN of x in evaluation, written out for in, ln and bn with this ratio of bn."""
    h = x.flatten(2)
    moments = [
        (h.mean(2, keepdim=True), h.var(2, correction=0, keepdim=True)),
        (h.mean((1, 2), keepdim=True), h.var((1, 2), correction=0, keepdim=True)),
    ]
    rest = (1 - ratio) / 2
    mean = ratio * layer.running_mean[:, None] + rest * sum(mean for mean, _ in moments)
    var = ratio * layer.running_var[:, None] + rest * sum(var for _, var in moments)
    y = (h - mean) / (var + layer.eps).sqrt() * layer.weight[:, None] + layer.bias[:, None]
    return y.reshape(x.shape)


@pytest.mark.parametrize('ratio', [1, 0.9, 1 / 3, 0.01])
@pytest.mark.parametrize('kind', [*KINDS, AnyBatchNorm])
def test_evaluation_is_the_requested_mix(kind, ratio, trained):
    layer = trained(kind(6, eps=1e-3)).eval()
    size = {nn.BatchNorm1d: (4,), nn.BatchNorm3d: (4, 5, 2)}.get(kind, (4, 5))
    x = torch.randn(3, 6, *size).double()
    expected = _mix(layer, ratio, x)

    assert convert_batch_norm(layer, ratio) is layer
    torch.testing.assert_close(layer(x), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize('dtype', [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_at_ratio_one_the_mixed_statistics_are_the_running_ones(dtype, trained):
    layer = trained(nn.BatchNorm2d(6)).to(dtype).eval()
    reference = copy.deepcopy(layer)
    x = (100 * torch.randn(3, 6, 4, 4)).to(dtype)

    convert_batch_norm(layer, 1)
    assert layer.mean_weight.dtype == dtype
    for ratios in layer.importance_ratios():
        assert ratios.tolist() == [0, 0, 1]
    torch.testing.assert_close(layer(x), reference(x))


@pytest.mark.parametrize('ratio', [1, 0.9])
def test_every_gradient_is_finite_and_the_others_learn_below_ratio_one(ratio, trained):
    layer = convert_batch_norm(trained(nn.BatchNorm2d(6)).float(), ratio)
    layer(torch.randn(3, 6, 4, 4)).square().sum().backward()

    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())
    assert layer.weight.grad.abs().min() > 0
    assert (layer.mean_weight.grad[:2].abs().min() > 0) == (ratio < 1)


@pytest.mark.parametrize(
    ('scopes', 'ratio', 'expected'),
    [
        (('bn',), 0.25, [1]),
        (('bn', 'in'), 0.25, [0.25, 0.75]),
        (('in', 'bn', 'gn', 'ln'), 0.4, [0.2, 0.4, 0.2, 0.2]),
        (('in', 'ln', 'bn'), 1e-3, [0.4995, 0.4995, 0.001]),
        (('in', 'ln', 'bn'), 1 - 1e-6, [5e-7, 5e-7, 1 - 1e-6]),
        (('in', 'ln', 'bn'), 1 - 1e-16, [0, 0, 1]),
    ],
)
def test_ratios_of_any_scopes(scopes, ratio, expected):
    layer = convert_batch_norm(nn.BatchNorm2d(8), ratio, scopes, num_groups=2, correction=1)
    assert (layer.scopes, layer.num_groups, layer.correction) == (scopes, 2, 1)
    for ratios in layer.importance_ratios():
        assert ratios.tolist() == pytest.approx(expected, rel=1e-5)


def test_a_ratio_of_one_third_starts_like_a_new_layer():
    layer = convert_batch_norm(nn.BatchNorm2d(8), 1 / 3)
    torch.testing.assert_close(layer.mean_weight, torch.ones(3))
    torch.testing.assert_close(layer.var_weight, torch.ones(3))


@pytest.fixture
def model(trained):
    """Return BatchNorms at two depths, one at two places, beside other layers."""
    shared = trained(nn.BatchNorm2d(4, momentum=None, eps=1e-2))
    return nn.ModuleDict(
        {
            'normalize': shared,
            'block': nn.Sequential(nn.Conv2d(4, 4, 1), trained(nn.BatchNorm2d(4)), shared),
            'gn': nn.GroupNorm(2, 4),
            'in': nn.InstanceNorm2d(4),
            'ours': OurBatchNorm(4),
            'sn': SwitchNorm(4),
            'sync': nn.SyncBatchNorm(4),
        }
    )


def test_every_batch_norm_is_converted_and_nothing_else(model):
    kinds = {name: type(layer) for name, layer in model.items()}
    controls = model['sn'].mean_weight
    assert convert_batch_norm(model) is model

    converted = {'normalize': SwitchNorm, 'sync': SyncSwitchNorm}
    assert {name: type(layer) for name, layer in model.items()} == {**kinds, **converted}
    assert [type(layer) for layer in model['block']] == [nn.Conv2d, SwitchNorm, SwitchNorm]
    assert model['normalize'] is model['block'][2]
    assert model['sn'].mean_weight is controls
    assert model['sync'].process_group is None


def test_parameters_buffers_modes_and_hooks_stay(model):
    model['normalize'].eval()
    model['block'][1].weight.requires_grad_(False)
    calls = []
    model['normalize'].register_forward_hook(lambda *_: calls.append('called'))
    before = {name: id(t) for name, t in (*model.named_parameters(), *model.named_buffers())}
    state = copy.deepcopy(model.state_dict())

    convert_batch_norm(model)

    after = {name: id(t) for name, t in (*model.named_parameters(), *model.named_buffers())}
    added = {name for name in after if name.endswith(('.mean_weight', '.var_weight'))}
    assert {name: i for name, i in after.items() if name in before} == before
    assert added - before.keys() == after.keys() - before.keys()
    assert all(torch.equal(model.state_dict()[name], value) for name, value in state.items())
    assert state['normalize.num_batches_tracked'] == 7
    assert (model['normalize'].training, model['block'][1].training) == (False, True)
    assert (model['normalize'].eps, model['normalize'].momentum) == (1e-2, None)
    model['normalize'](torch.randn(2, 4, 3, 3).double())
    assert calls == ['called']


def test_controls_are_trained_where_the_affine_map_is(trained):
    frozen = nn.BatchNorm2d(4).requires_grad_(False)
    for layer, is_trained in ((frozen, False), (nn.BatchNorm2d(4), True)):
        convert_batch_norm(layer)
        assert layer.mean_weight.requires_grad == layer.var_weight.requires_grad == is_trained


def test_without_affine_map_or_running_statistics(trained):
    bare = nn.BatchNorm2d(4, affine=False, track_running_stats=False)
    x = torch.randn(3, 4, 5, 5)
    expected = bare.eval()(x)
    convert_batch_norm(bare, 1)
    assert bare.mean_weight.requires_grad
    torch.testing.assert_close(bare(x), expected)

    plain = trained(nn.BatchNorm2d(4, affine=False)).eval()
    expected = plain(x.double())
    convert_batch_norm(plain, 1)
    assert plain.mean_weight.dtype == torch.float64
    torch.testing.assert_close(plain(x.double()), expected)


def test_training_goes_on_as_batch_norm_at_ratio_one(trained):
    layer = trained(nn.BatchNorm2d(4))
    reference = copy.deepcopy(layer)
    x = torch.randn(3, 4, 5, 5).double()
    convert_batch_norm(layer, 1)

    torch.testing.assert_close(layer(x), reference(x))
    torch.testing.assert_close(layer.running_mean, reference.running_mean)
    # The running variance averages the variance that training normalizes with.
    biased = 0.1 * x.var((0, 2, 3), correction=0) - 0.1 * x.var((0, 2, 3), correction=1)
    torch.testing.assert_close(layer.running_var, reference.running_var + biased)
    assert layer.num_batches_tracked == 8


def test_converted_model_is_saved_copied_and_shown(model):
    convert_batch_norm(model, 0.5)
    again = convert_batch_norm(nn.ModuleDict({'normalize': nn.BatchNorm2d(4)}))
    part = {k: v for k, v in model.state_dict().items() if k.startswith('normalize.')}
    again.load_state_dict(part)
    assert torch.equal(again['normalize'].mean_weight, model['normalize'].mean_weight.float())
    assert copy.deepcopy(model['sync']).process_group is None
    assert "scopes=('in', 'ln', 'bn'), correction=0" in repr(model['normalize'])


@pytest.mark.parametrize(
    ('arguments', 'error', 'words'),
    [
        ({'batch_ratio': 0}, ValueError, r'batch_ratio is 0, outside \(0, 1\]'),
        ({'batch_ratio': 1.01}, ValueError, r'batch_ratio is 1.01, outside \(0, 1\]'),
        ({'batch_ratio': float('nan')}, ValueError, 'batch_ratio is nan'),
        ({'batch_ratio': '0.5'}, TypeError, "batch_ratio must be a number, not '0.5'"),
        ({'batch_ratio': True}, TypeError, 'batch_ratio must be a number'),
        ({'scopes': ('in', 'ln')}, ValueError, "lacks 'bn', which takes over the running"),
        ({'scopes': 'bn'}, TypeError, 'scopes must be a tuple'),
        ({'scopes': ('gn', 'bn')}, ValueError, 'cannot split 6 channels into 32'),
        ({'correction': 2}, ValueError, 'correction must be 0 or 1'),
    ],
)
def test_layers_that_cannot_be_converted_stay_as_they_are(arguments, error, words):
    model = nn.Sequential(nn.BatchNorm2d(64), nn.BatchNorm2d(6))
    with pytest.raises(error, match=words):
        convert_batch_norm(model, **arguments)
    assert [type(layer) for layer in model] == [nn.BatchNorm2d] * 2
    assert not any('mean_weight' in name for name in model.state_dict())


def test_a_model_wrapped_for_distribution_is_refused():
    dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    try:
        model = DistributedDataParallel(nn.Sequential(nn.BatchNorm2d(4)))
        for module in (model, nn.Sequential(model)):
            with pytest.raises(ValueError, match='convert the model before it is wrapped'):
                convert_batch_norm(module)
        assert type(model.module[0]) is nn.BatchNorm2d
        convert_batch_norm(model.module)
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize('lazy', [nn.LazyBatchNorm1d, nn.LazyBatchNorm2d, nn.LazyBatchNorm3d])
def test_a_layer_without_channels_is_refused(lazy):
    model = nn.Sequential(nn.BatchNorm2d(64), lazy())
    with pytest.raises(ValueError, match=rf'a {lazy.__name__} has seen no data .*: run the model'):
        convert_batch_norm(model)
    assert type(model[0]) is nn.BatchNorm2d
    assert type(model[1]) is lazy


def test_a_lazy_layer_that_has_seen_data_is_converted():
    model = nn.Sequential(nn.LazyBatchNorm2d())
    model(torch.randn(2, 5, 3, 3))
    assert type(convert_batch_norm(model)[0]) is SwitchNorm
    assert model[0].num_features == 5


@pytest.mark.parametrize('name', ['weight', 'bias'])
@pytest.mark.parametrize('kind', KINDS)
def test_a_parametrized_layer_is_left_alone(kind, name):
    layer = kind(4).eval()
    register_parametrization(layer, name, nn.Tanh())
    state = copy.deepcopy(layer.state_dict())
    model = convert_batch_norm(nn.ModuleList([nn.BatchNorm2d(4), layer]))

    assert [isinstance(part, SwitchNorm) for part in model] == [True, False]
    assert is_parametrized(layer, name)
    assert layer.state_dict().keys() == state.keys()
    torch.testing.assert_close(
        getattr(layer, name), state[f'parametrizations.{name}.original'].tanh()
    )


@pytest.mark.parametrize('kind', ['BN1d', 'BN2d', 'BN3d', 'SyncBN'])
def test_a_norm_that_mmcv_folds_into_the_convolution_runs(kind, trained):
    conv_module = pytest.importorskip('mmcv.cnn').ConvModule
    dims = {'BN1d': 1, 'BN3d': 3}.get(kind, 2)
    options = dict(conv_cfg=dict(type=f'Conv{dims}d'), act_cfg=None, efficient_conv_bn_eval=True)
    block = conv_module(3, 6, 1, norm_cfg=dict(type=kind), **options).double().eval()
    trained(block.norm)
    x = torch.randn(2, 3, *[4] * dims).double()
    expected = _mix(block.norm, 1 / 3, block.conv(x))

    convert_batch_norm(nn.Sequential(block), 1 / 3)
    torch.testing.assert_close(block(x), expected, rtol=1e-12, atol=1e-12)


def test_folding_stays_where_the_norm_does():
    conv_module = pytest.importorskip('mmcv.cnn').ConvModule
    block = conv_module(3, 6, 1, norm_cfg=dict(type='BN'), efficient_conv_bn_eval=True)
    register_parametrization(block.norm, 'weight', nn.Tanh())
    beside = conv_module(3, 6, 1, norm_cfg=dict(type='BN'), efficient_conv_bn_eval=True)
    convert_batch_norm(nn.ModuleList([block, nn.ModuleList([block, beside]), nn.BatchNorm2d(6)]))
    assert block.efficient_conv_bn_eval_forward is not None
    assert beside.efficient_conv_bn_eval_forward is None
