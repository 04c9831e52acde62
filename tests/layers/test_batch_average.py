"""Running statistics as the average over given batches, against averages computed by hand."""

import copy
import warnings

import pytest
import torch
from torch import nn
from torch.optim import swa_utils

import sn_openmmlab
from sn_openmmlab import BatchRenorm, SwitchNorm, SyncSwitchNorm, update_bn
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.batch_average import batch_average

SIZES = [(4, 3, 3, 5), (2, 3, 4, 4), (1, 3, 6, 2), (3, 3, 1, 1)]
EVEN = [(2, 3, 4, 4)] * 3


def _draw(sizes):
    """Return batches of unequal scales and centres."""
    return [k + (k + 1) * torch.randn(size).double() for k, size in enumerate(sizes)]


@pytest.fixture
def batches():
    return _draw(SIZES)


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


def _run(model, batch):
    return model(batch)


def _batch_moments(inputs, correction=0):
    """Return the average per channel of the batches' means and variances, weighted by samples."""
    weights = [len(x) / sum(map(len, inputs)) for x in inputs]
    tables = [x.transpose(0, 1).flatten(1) for x in inputs]
    means = [w * table.mean(1) for w, table in zip(weights, tables, strict=True)]
    variances = [
        w * table.var(1, correction=correction) for w, table in zip(weights, tables, strict=True)
    ]
    return sum(means), sum(variances)


def _state(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def _settings(model):
    norms = [layer for layer in model.modules() if hasattr(layer, 'momentum')]
    return [layer.training for layer in model.modules()], [layer.momentum for layer in norms]


def _is_statistic(name):
    return name.endswith(('running_mean', 'running_var'))


def _check_rest(model, before, changed):
    """Check that of the state only the running statistics of the layers in `changed` changed."""
    for name, value in _state(model).items():
        expected = name.rpartition('.')[0] in changed and _is_statistic(name)
        assert torch.equal(value, before[name]) != expected, name


@pytest.mark.parametrize('kind', [SwitchNorm, SyncSwitchNorm])
@pytest.mark.parametrize('momentum', [0.1, None, 0.0])
def test_averages_of_the_means_and_variances_of_batches(kind, momentum, batches, randomized):
    layer = randomized(kind(3, momentum=momentum)).double().eval()
    assert batch_average(layer, batches, _run) == ['']

    mean, var = _batch_moments(batches)
    torch.testing.assert_close(layer.running_mean, mean)
    torch.testing.assert_close(layer.running_var, var)
    assert (layer.momentum, layer.training) == (momentum, False)
    assert layer.num_batches_tracked == 0


def test_batch_renorm_is_set_like_batch_norm_and_normalizes_as_in_training(batches, randomized):
    renorm = BatchRenorm(3, momentum=0.3, r_max=2.0, d_max=1.0, begin=5, r_end=7, d_end=7)
    model = nn.Sequential(randomized(renorm), SwitchNorm(3)).double()
    renorm.num_batches_tracked.fill_(6)  # the next batch is half way between
    before = _state(renorm)
    outputs = []
    for x in batches:
        renorm.load_state_dict(before)
        outputs.append(renorm(x).detach())
    renorm.load_state_dict(before)

    assert batch_average(model, batches, _run) == ['1']
    torch.testing.assert_close(_state(renorm), before, rtol=0, atol=0)
    assert batch_average(model, batches, _run, batch_norm=True) == ['0', '1']
    for layer, inputs in zip(model, (batches, outputs), strict=True):
        mean, var = _batch_moments(inputs)
        torch.testing.assert_close(layer.running_mean, mean)
        torch.testing.assert_close(layer.running_var, var)
    assert renorm.momentum == 0.3
    assert renorm.num_batches_tracked == 6


def test_batches_of_one_size_have_the_same_weight(randomized):
    """The paper's estimator, Sec. 2: the averages of the means and variances of the batches."""
    layer, batches = randomized(SwitchNorm(3)).double(), _draw(EVEN)
    batch_average(layer, batches, _run)
    moments = [torch.var_mean(x, (0, 2, 3), correction=0) for x in batches]
    torch.testing.assert_close(layer.running_var, sum(var for var, _ in moments) / 3)
    torch.testing.assert_close(layer.running_mean, sum(mean for _, mean in moments) / 3)


def test_pooled_variance_is_that_of_all_samples_as_one_batch(randomized):
    layer, batches = randomized(SwitchNorm(3)).double(), _draw([(4, 3, 5), (1, 3, 5), (2, 3, 5)])
    batch_average(layer, batches, _run, variance='pooled')
    var, mean = torch.var_mean(torch.cat(batches), (0, 2), correction=0)
    torch.testing.assert_close(layer.running_mean, mean)
    torch.testing.assert_close(layer.running_var, var)


def test_pooled_variance_keeps_its_digits_far_from_zero(randomized):
    layer = SwitchNorm(3).double()
    batches = [1e8 + x for x in _draw(EVEN)]
    batch_average(layer, batches, _run, variance='pooled')
    var = torch.cat(batches).var((0, 2, 3), correction=0)
    torch.testing.assert_close(layer.running_var, var)


def test_an_unknown_variance_is_refused():
    with pytest.raises(ValueError, match="variance must be 'mean' or 'pooled', not 'median'"):
        batch_average(SwitchNorm(3), [], _run, variance='median')


def test_a_layer_behind_others_averages_its_inputs_in_training(model, batches):
    reference = copy.deepcopy(model).train()
    with torch.no_grad():
        inputs = [reference[0](x) for x in batches]
        seconds = [reference[1](x) for x in inputs]
    assert batch_average(model, batches, _run, batch_norm=True) == ['0', '1', '2']

    mean, var = _batch_moments(inputs, correction=1)
    torch.testing.assert_close(model[1].running_mean, mean)
    torch.testing.assert_close(model[1].running_var, var)
    mean, var = _batch_moments(seconds)
    torch.testing.assert_close(model[2].running_mean, mean)


def test_nothing_else_changes(model, batches):
    before, settings = _state(model), _settings(model)
    assert batch_average(model, batches, _run) == ['0', '2']
    _check_rest(model, before, {'0', '2'})
    assert _settings(model) == settings
    assert settings[1] == [0.3, 0.2, None, 0.1, 0.1]
    assert not any(layer._forward_hooks or layer._forward_pre_hooks for layer in model)


class Shared(nn.Module):
    """A head that is called for every level, as in RetinaNet, the last of which may be empty."""

    def __init__(self, norm):
        super().__init__()
        self.norm = norm

    def forward(self, levels):
        return [self.norm(x) for x in levels]


def test_every_call_of_a_shared_layer_counts_by_its_samples(batches, randomized):
    model = Shared(randomized(SwitchNorm(3))).double()
    empty = torch.empty(0, 3, 4, 4).double()
    batch_average(model, [[*batches[:2], empty], [empty], [*batches[2:]]], _run)
    mean, var = _batch_moments(batches)
    torch.testing.assert_close(model.norm.running_mean, mean)
    torch.testing.assert_close(model.norm.running_var, var)


def test_an_empty_call_of_batch_norm_does_not_count(randomized):
    layer, (x, *_) = randomized(nn.BatchNorm2d(3)).double(), _draw(EVEN)
    empty = torch.empty(0, 3, 4, 4).double()
    batch_average(layer, [empty, x, empty], _run, batch_norm=True)
    torch.testing.assert_close(layer.running_mean, x.mean((0, 2, 3)))


@pytest.mark.parametrize('kind', [SwitchNorm, nn.BatchNorm2d])
def test_statistics_that_are_not_finite_are_replaced(kind, batches):
    layer = kind(3).double()
    layer.running_mean.fill_(torch.nan)
    layer.running_var.fill_(torch.inf)
    batch_average(layer, batches, _run, batch_norm=True)
    torch.testing.assert_close(layer.running_mean, _batch_moments(batches)[0])
    assert layer.running_var.isfinite().all()


def test_half_precision_averages_in_float64(randomized):
    layer, batches = randomized(SwitchNorm(3)).bfloat16(), [x.bfloat16() for x in _draw(EVEN * 9)]
    batch_average(layer, batches, _run)
    # Each batch's moments are rounded to bfloat16; their average would drift by more.
    mean, var = _batch_moments([x.double() for x in batches])
    torch.testing.assert_close(layer.running_mean.double(), mean, rtol=2**-7, atol=0)
    torch.testing.assert_close(layer.running_var.double(), var, rtol=2**-7, atol=0)


def test_batch_norm_gets_what_torchs_function_gives_it(randomized):
    net = nn.Sequential(randomized(nn.BatchNorm2d(3)), nn.ReLU(), nn.BatchNorm2d(3)).double()
    reference, batches = copy.deepcopy(net), _draw(EVEN)
    update_bn(batches, net)
    swa_utils.update_bn(batches, reference)
    found, expected = _state(net), _state(reference)
    for name in filter(_is_statistic, expected):
        torch.testing.assert_close(found[name], expected[name])


def test_torchs_function_ignores_sn(batches, randomized):
    """The docstring of `update_bn` says so; it must change if torch does."""
    layer = randomized(SwitchNorm(3)).double()
    before = _state(layer)
    swa_utils.update_bn(batches, layer)
    torch.testing.assert_close(_state(layer), before, rtol=0, atol=0)


def test_no_gradients_are_kept(model, batches):
    seen = []

    def run(copied, x):
        seen.append((copied(x).requires_grad, copied.training))

    batch_average(model, batches, run)
    assert seen == [(False, True)] * len(batches)


@pytest.mark.parametrize('error', [RuntimeError, KeyboardInterrupt])
def test_a_failure_changes_nothing(error, model, batches):
    def fail_at_the_second():
        yield batches[0]
        raise error

    state, settings = _state(model), _settings(model)
    with pytest.raises(error):
        update_bn(fail_at_the_second(), model)
    torch.testing.assert_close(_state(model), state, rtol=0, atol=0)
    assert _settings(model) == settings


def test_an_uninitialized_layer_stops_it_and_nothing_changes(model, batches):
    model.append(nn.LazyBatchNorm2d())
    settings = _settings(model)
    with pytest.raises(UsageError, match='uninitialized'):
        update_bn(batches, model)
    assert _settings(model) == settings


@pytest.mark.parametrize('pack', [lambda x: x, lambda x: [x], lambda x: (x, 'label')])
def test_batches_are_tensors_or_stand_first(pack, batches, randomized):
    layer = randomized(SwitchNorm(3)).double()
    expected = copy.deepcopy(layer)
    update_bn(batches, expected)
    update_bn(iter([pack(x) for x in batches]), layer)
    torch.testing.assert_close(_state(layer), _state(expected), rtol=0, atol=0)


class Elsewhere:
    """A batch on another device."""

    def __init__(self, x):
        self.x, self.devices = x, []

    def to(self, device):
        self.devices.append(device)
        return self.x


def test_batches_go_to_the_device(batches):
    elsewhere = [Elsewhere(x) for x in batches]
    update_bn(elsewhere, SwitchNorm(3).double(), 'cpu')
    assert [batch.devices for batch in elsewhere] == [['cpu']] * len(batches)


class Branches(nn.Module):
    """A model that does not use some of its layers."""

    def __init__(self, randomized, unused=1):
        super().__init__()
        self.used = randomized(SwitchNorm(3))
        self.unused = nn.ModuleList(randomized(SwitchNorm(3)) for _ in range(unused))

    def forward(self, x):
        return self.used(x)


def _warnings(function, *args):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        function(*args)
    # The warning points to the line that called it.
    assert all(warning.filename == __file__ for warning in caught)
    return [str(warning.message) for warning in caught]


STAY = 'there the running statistics stay as they were.'


@pytest.mark.parametrize(
    ('unused', 'named'),
    [
        (1, 'unused.0'),
        (3, 'unused.0, unused.1, unused.2'),
        (5, 'unused.0, unused.1, unused.2 and 2 more layers'),
    ],
)
def test_layers_that_no_batch_reached_are_named_and_unchanged(unused, named, batches, randomized):
    model = Branches(randomized, unused).double()
    before = _state(model)
    assert _warnings(update_bn, batches, model) == [f'No batch reached {named}: {STAY}']
    _check_rest(model, before, {'used'})
    assert len(_warnings(batch_average, model, batches, _run)) == 1


@pytest.mark.parametrize('nothing', [[], [torch.empty(0, 3, 4, 4).double()]])
def test_a_loader_without_a_sample_changes_nothing(nothing, randomized):
    model = Branches(randomized).double()
    before = _state(model)
    assert _warnings(update_bn, nothing, model) == [
        f'No batch reached any of the 2 layers with running statistics: {STAY}'
    ]
    _check_rest(model, before, set())


@pytest.mark.parametrize('batch_norm', [False, True])
def test_a_model_without_running_statistics_takes_no_batch(batch_norm):
    def fail():
        raise AssertionError
        yield

    model = nn.Sequential(SwitchNorm(3, scopes=('in', 'ln')))
    if not batch_norm:
        model.append(nn.BatchNorm2d(3))
    assert batch_average(model, fail(), _run, batch_norm=batch_norm) == []


def test_a_sparse_layer_is_set_only_if_it_uses_the_batch(batches, randomized):
    model = nn.Sequential(*(randomized(SwitchNorm(3)) for _ in range(2))).double()
    model[0].choose(torch.tensor(2), torch.tensor(0))
    model[1].choose(torch.tensor(1), torch.tensor(0))
    before = _state(model)
    assert _warnings(batch_average, model, batches, _run) == []
    _check_rest(model, before, {'0'})
    torch.testing.assert_close(model[0].running_mean, _batch_moments(batches)[0])


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
    before = _state(model[0])
    with torch.no_grad():
        inputs = [copy.deepcopy(model[0]).eval()(x) for x in batches]

    assert _warnings(update_bn, batches, model) == []
    torch.testing.assert_close(_state(model[0]), before, rtol=0, atol=0)
    torch.testing.assert_close(model[1].running_mean, _batch_moments(inputs)[0])


class Teacher(nn.Module):
    """Evaluates its layer before it trains it, as models with pseudo-labels do."""

    def __init__(self, norm):
        super().__init__()
        self.norm, self.after = norm, SwitchNorm(3)

    def forward(self, x):
        labels = self.norm.eval()(x)
        self.norm.train()(x)
        return self.after(labels)


def test_calls_in_evaluation_use_the_models_statistics_and_do_not_count(batches, randomized):
    model = Teacher(randomized(SwitchNorm(3))).double()
    with torch.no_grad():
        labels = [copy.deepcopy(model.norm).eval()(x) for x in batches]
    batch_average(model, batches, _run)
    torch.testing.assert_close(model.norm.running_mean, _batch_moments(batches)[0])
    torch.testing.assert_close(model.after.running_mean, _batch_moments(labels)[0])


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
