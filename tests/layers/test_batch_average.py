"""Running statistics as the average over given batches, against averages computed by hand."""

import copy
import warnings

import pytest
import torch
from torch import nn
from torch.optim import swa_utils

import sn_openmmlab
from sn_openmmlab import SwitchNorm, SyncSwitchNorm, update_bn
from sn_openmmlab.layers.batch_average import average_batches

SIZES = [(4, 3, 3, 5), (2, 3, 4, 4), (1, 3, 6, 2), (3, 3, 1, 1)]


@pytest.fixture
def batches():
    """Return batches of unequal sizes, scales and centres."""
    return [k + (k + 1) * torch.randn(size).double() for k, size in enumerate(SIZES)]


@pytest.fixture
def model(randomized):
    """Return norms in sequence that were trained with momentum, in mixed modes."""
    norms = [SwitchNorm(3, momentum=0.3), nn.BatchNorm2d(3, momentum=0.2)]
    norms += [SyncSwitchNorm(3, momentum=None, correction=1), SwitchNorm(3, scopes=('in', 'ln'))]
    norms += [SwitchNorm(3, track_running_stats=False)]
    net = nn.Sequential(*map(randomized, norms), nn.Dropout(0.0)).double()
    net[3].eval()
    for norm in net[:3]:
        norm.num_batches_tracked.fill_(7)
    return net


def _batch_moments(inputs, correction=0):
    """Return the average over batches of mean and variance per channel, in float64."""
    tables = [x.transpose(0, 1).flatten(1) for x in inputs]
    variances = [table.var(1, correction=correction) for table in tables]
    return (
        torch.stack([table.mean(1) for table in tables]).mean(0),
        torch.stack(variances).mean(0),
    )


def _statistics(model):
    return {name: value.clone() for name, value in model.named_buffers()}


def _settings(model):
    norms = [layer for layer in model.modules() if hasattr(layer, 'momentum')]
    return [layer.training for layer in model.modules()], [layer.momentum for layer in norms]


@pytest.mark.parametrize('kind', [SwitchNorm, SyncSwitchNorm])
@pytest.mark.parametrize('momentum', [0.1, None])
def test_averages_of_the_means_and_variances_of_batches(kind, momentum, batches, randomized):
    layer = randomized(kind(3, momentum=momentum)).double().eval()
    update_bn(batches, layer)

    mean, var = _batch_moments(batches)
    torch.testing.assert_close(layer.running_mean, mean)
    torch.testing.assert_close(layer.running_var, var)
    assert layer.num_batches_tracked == len(batches)
    assert (layer.momentum, layer.training) == (momentum, False)


def test_a_layer_behind_another_averages_its_inputs_in_training(model, batches):
    reference = copy.deepcopy(model).train()
    with torch.no_grad():
        inputs = [reference[0](x) for x in batches]
        seconds = [reference[1](x) for x in inputs]
    update_bn(batches, model)

    mean, var = _batch_moments(inputs, correction=1)
    torch.testing.assert_close(model[1].running_mean, mean)
    torch.testing.assert_close(model[1].running_var, var)
    mean, var = _batch_moments(seconds)
    torch.testing.assert_close(model[2].running_mean, mean)


def test_batch_norm_gets_what_torchs_function_gives_it(batches, randomized):
    net = nn.Sequential(randomized(nn.BatchNorm2d(3)), nn.ReLU(), nn.BatchNorm2d(3)).double()
    reference = copy.deepcopy(net)
    update_bn(batches, net)
    swa_utils.update_bn(batches, reference)
    torch.testing.assert_close(_statistics(net), _statistics(reference), rtol=0, atol=0)


def test_torchs_function_ignores_sn(batches, randomized):
    """The docstring of `update_bn` says so; it must change if torch does."""
    layer = randomized(SwitchNorm(3)).double()
    before = _statistics(layer)
    swa_utils.update_bn(batches, layer)
    torch.testing.assert_close(_statistics(layer), before, rtol=0, atol=0)


def test_modes_and_momenta_are_those_from_before(model, batches):
    before = _settings(model)
    update_bn(batches, model)
    assert _settings(model) == before
    assert before[1] == [0.3, 0.2, None, 0.1, 0.1]
    assert model[4].running_mean is None


def test_no_gradients_are_kept(model, batches):
    seen = []
    model.register_forward_hook(lambda module, args, y: seen.append(y.requires_grad))
    update_bn(batches, model)
    assert seen == [False] * len(batches)


@pytest.mark.parametrize('error', [RuntimeError, KeyboardInterrupt])
def test_a_failure_changes_nothing(error, model, batches):
    def fail_at_the_second(module, args):
        if module[0].num_batches_tracked == 1:
            raise error

    model.register_forward_pre_hook(fail_at_the_second)
    statistics, settings = _statistics(model), _settings(model)
    with pytest.raises(error):
        update_bn(batches, model)
    torch.testing.assert_close(_statistics(model), statistics, rtol=0, atol=0)
    assert _settings(model) == settings


def test_an_uninitialized_layer_stops_it_and_nothing_changes(model, batches):
    model.append(nn.LazyBatchNorm2d())
    settings = _settings(model)
    with pytest.raises(ValueError, match='uninitialized'):
        update_bn(batches, model)
    assert _settings(model) == settings


@pytest.mark.parametrize('pack', [lambda x: x, lambda x: [x], lambda x: (x, 'label')])
def test_batches_are_tensors_or_stand_first(pack, batches, randomized):
    layer = randomized(SwitchNorm(3)).double()
    expected = copy.deepcopy(layer)
    update_bn(batches, expected)
    update_bn(iter([pack(x) for x in batches]), layer)
    torch.testing.assert_close(_statistics(layer), _statistics(expected), rtol=0, atol=0)


def test_batches_go_to_the_device(batches):
    layer, seen = SwitchNorm(3, device='meta'), []
    layer.register_forward_pre_hook(lambda module, args: seen.append(args[0].device.type))
    # A tensor on this device has no value to read afterwards.
    layer.num_batches_tracked = torch.tensor(0)
    update_bn(batches, layer, 'meta')
    assert seen == ['meta'] * len(batches)


class Branches(nn.Module):
    """A model that does not use one of its layers."""

    def __init__(self, randomized):
        super().__init__()
        self.used, self.unused = randomized(SwitchNorm(3)), randomized(SwitchNorm(3))

    def forward(self, x):
        return self.used(x)


def _warnings(*args):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        update_bn(*args)
    # The warning points to the line that called it.
    assert all(warning.filename == __file__ for warning in caught)
    return [str(warning.message) for warning in caught]


def test_a_layer_that_no_batch_reached_is_named_and_unchanged(batches, randomized):
    model = Branches(randomized).double()
    before = _statistics(model)
    assert _warnings(batches, model) == [
        'No batch reached unused: there the running statistics stay as they were.'
    ]
    for name, value in before.items():
        assert torch.equal(_statistics(model)[name], value) == name.startswith('unused.')


@pytest.mark.parametrize('nothing', [[], [torch.empty(0, 3, 4, 4).double()]])
def test_a_loader_without_a_sample_changes_nothing(nothing, randomized):
    model = Branches(randomized).double()
    before = _statistics(model)
    assert _warnings(nothing, model) == [
        'No batch reached any of the 2 layers with running statistics: there the running '
        'statistics stay as they were.'
    ]
    torch.testing.assert_close(_statistics(model), before, rtol=0, atol=0)


def test_a_model_without_running_statistics_takes_no_batch():
    def fail():
        raise AssertionError
        yield

    assert _warnings(fail(), nn.Sequential(SwitchNorm(3, scopes=('in', 'ln')))) == []


class FrozenStage(nn.Module):
    """Like a backbone with `norm_eval`: its norm stays in evaluation mode."""

    def __init__(self, norm):
        super().__init__()
        self.norm = norm

    def train(self, mode=True):
        super().train(mode)
        self.norm.eval()
        return self

    def forward(self, x):
        return self.norm(x)


@pytest.mark.parametrize('kind', [SwitchNorm, nn.BatchNorm2d])
def test_a_layer_that_never_trains_keeps_and_uses_its_statistics(kind, batches, randomized):
    model = nn.Sequential(FrozenStage(randomized(kind(3))), SwitchNorm(3)).double()
    before = _statistics(model[0])
    with torch.no_grad():
        inputs = [copy.deepcopy(model[0]).eval()(x) for x in batches]

    assert _warnings(batches, model) == []
    torch.testing.assert_close(_statistics(model[0]), before, rtol=0, atol=0)
    torch.testing.assert_close(model[1].running_mean, _batch_moments(inputs)[0])


def test_context_averages_batches_of_any_loop(batches, randomized):
    layer = randomized(SwitchNorm(3)).double().eval()
    with torch.no_grad(), average_batches(layer):
        assert layer.training
        for x in batches:
            layer(x)
    mean, var = _batch_moments(batches)
    torch.testing.assert_close(layer.running_mean, mean)
    torch.testing.assert_close(layer.running_var, var)


def test_averaged_model_evaluates_with_the_averages_of_its_own_weights(batches):
    model = nn.Sequential(nn.Conv2d(3, 3, 1), SwitchNorm(3, scopes=('bn',))).double()
    averaged = swa_utils.AveragedModel(model)
    with torch.no_grad():
        model[0].weight.mul_(5)
    averaged.update_parameters(model)
    sn_openmmlab.update_bn([batches[0]], averaged)

    y = averaged.eval()(batches[0])
    torch.testing.assert_close(y.mean((0, 2, 3)), torch.zeros(3).double())
    torch.testing.assert_close(
        y.var((0, 2, 3), correction=0), torch.ones(3).double(), atol=1e-4, rtol=0
    )
