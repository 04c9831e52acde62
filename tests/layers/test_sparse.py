"""Sparse layers: against the norms that they chose, and what can happen to them afterwards."""

import copy
import itertools
import pickle

import pytest
import torch
from torch import nn

from sn_openmmlab import SwitchNorm, SyncSwitchNorm
from sn_openmmlab.errors import WeightsError
from sn_openmmlab.layers.sparse import copy_choices, sparsify
from sn_openmmlab.ops.backends import use_backend
from tests import reference
from tests.backends import BUILT, ON_CPU

SCOPES = ('in', 'gn', 'ln', 'bn')
PAIRS = list(itertools.product(SCOPES, SCOPES))


@pytest.fixture
def x():
    return (3 * torch.randn(3, 4, 5, 2) + 1).double()


@pytest.fixture
def make(randomized):
    """Return a function (mean scope, variance scope, options) -> a sparse layer."""
    return lambda mean, var, **options: sparsify(_trained(randomized, mean, var, **options))


def _trained(randomized, mean, var, **options):
    """Return a dense layer in float64 whose largest ratios are those of `mean` and `var`."""
    options = {'scopes': SCOPES, 'num_groups': 2, **options}
    layer = randomized(SwitchNorm(4, **options)).double()
    with torch.no_grad():
        for control, scope in ((layer.mean_weight, mean), (layer.var_weight, var)):
            control[..., layer.scopes.index(scope)] = 10
    return layer


def _expected(layer, x, mean, var):
    """Normalize by the moments of two scopes (Eq. 2 and 3), without a mix."""
    moments = {}
    for scope in {mean, var}:
        moments[scope] = reference.scope_moments(
            x, scope, num_groups=layer.num_groups, correction=layer.correction
        )
    if not layer.training:
        given = layer.running_mean, layer.running_var
        moments['bn'] = [table.expand(x.shape[:2]) for table in given]
    centre, square = moments[mean][0], moments[var][1]
    y = (x - reference.like(centre, x)) / reference.like((square + layer.eps).sqrt(), x)
    return y * reference.like(layer.weight[None], x) + reference.like(layer.bias[None], x)


@pytest.mark.parametrize('correction', [0, 1])
@pytest.mark.parametrize('training', [True, False])
@pytest.mark.parametrize('backend', ON_CPU)
@pytest.mark.parametrize(('mean', 'var'), PAIRS)
def test_output_and_gradients_are_those_of_the_chosen_scopes(
    mean, var, backend, training, correction, make, outcome, x
):
    layer = make(mean, var, correction=correction).train(training)
    grad = torch.randn_like(x)
    normalize = lambda layer, x: _expected(layer, x, mean, var)  # noqa: E731

    with use_backend(backend):
        found = outcome(copy.deepcopy(layer), x, grad)

    x = x.clone().requires_grad_()
    inputs = {'x': x, 'weight': layer.weight, 'bias': layer.bias}
    y = normalize(layer, x)
    grads = torch.autograd.grad(y, list(inputs.values()), grad)
    expected = {'y': y.detach(), **dict(zip(inputs, grads, strict=True))}
    torch.testing.assert_close({name: found[name] for name in expected}, expected)
    for name in ('mean_weight', 'var_weight'):
        assert not found[name].any()  # not even a rounding error
    for ratios, scope in zip(layer.importance_ratios(), (mean, var), strict=True):
        assert dict(zip(SCOPES, ratios.tolist(), strict=True))[scope] == ratios.sum() == 1


@pytest.mark.parametrize('training', [True, False])
@pytest.mark.parametrize('backend', ON_CPU)
@pytest.mark.parametrize('spoil', [-1e30, 1e30, float('nan'), float('inf'), -float('inf')])
@pytest.mark.parametrize('chosen', [('in', 'bn'), ('ln', 'ln'), ('bn', 'bn')])
def test_the_values_of_the_control_parameters_do_not_matter(
    chosen, spoil, backend, training, make, outcome, x
):
    layer = make(*chosen).train(training)
    grad = torch.randn_like(x)
    with use_backend(backend):
        expected = outcome(copy.deepcopy(layer), x, grad)

    with torch.no_grad():
        layer.mean_weight.fill_(spoil)
        layer.var_weight.fill_(spoil)

    with use_backend(backend):
        found = outcome(copy.deepcopy(layer), x, grad)
    assert all(torch.equal(found[name], value) for name, value in expected.items())
    assert not found['mean_weight'].any() and not found['var_weight'].any()
    assert sparsify(layer).used_scopes == tuple(dict.fromkeys(chosen))
    for ratios, scope in zip(layer.importance_ratios(), chosen, strict=True):
        assert dict(zip(SCOPES, ratios.tolist(), strict=True))[scope] == ratios.sum() == 1


def test_training_with_weight_decay_and_momentum_changes_no_ratio(randomized, x):
    layer = _trained(randomized, 'ln', 'bn')
    optimizer = torch.optim.SGD(layer.parameters(), lr=1.0, momentum=0.9, weight_decay=0.5)

    def step():
        optimizer.zero_grad()
        (layer(x) * torch.arange(4.0).view(4, 1, 1)).square().sum().mul(1e-3).backward()
        optimizer.step()

    step()
    sparsify(layer)
    for _ in range(20):
        step()

    assert [ratios.tolist() for ratios in layer.importance_ratios()] == [[0, 0, 1, 0], [0, 0, 0, 1]]
    torch.testing.assert_close(layer(x), _expected(layer, x, 'ln', 'bn'))


@pytest.mark.parametrize('kind', [SwitchNorm, SyncSwitchNorm])
def test_loading_the_choice_makes_a_layer_sparse(kind, make, x):
    trained = make('gn', 'in').eval()
    layer = kind(4, scopes=SCOPES, num_groups=2).double().eval()

    layer.load_state_dict(trained.state_dict())

    assert layer.used_scopes == ('in', 'gn')
    assert torch.equal(layer(x), trained(x))
    assert torch.equal(copy.deepcopy(layer)(x), trained(x))
    assert layer.reset_parameters() is None and not layer.is_sparse
    assert set(layer.state_dict()) == set(kind(4, scopes=SCOPES, num_groups=2).state_dict())


def test_a_dense_state_dict_has_no_choice(randomized):
    assert not any('choice' in name for name in SwitchNorm(4).state_dict())


def test_a_choice_that_does_not_fit_is_refused(make):
    state = make('in', 'in').state_dict()
    layer = SwitchNorm(4, scopes=SCOPES, num_groups=2).double()

    for wrong in (torch.tensor([4]), torch.tensor([-1]), torch.tensor([0, 1])):
        with pytest.raises(WeightsError, match='mean_choice'):
            layer.load_state_dict({**state, 'mean_choice': wrong})

    assert not layer.is_sparse


@pytest.mark.parametrize('strict', [True, False])
@pytest.mark.parametrize('present', ['mean_choice', 'var_choice'])
def test_half_a_choice_is_refused(present, strict, make, x):
    state = make('ln', 'ln').state_dict()
    (lacking,) = {'mean_choice', 'var_choice'} - {present}
    del state[lacking]
    dense = SwitchNorm(4, scopes=SCOPES, num_groups=2).double()
    sparse = make('in', 'bn').eval()
    expected = sparse(x)

    for layer in (dense, sparse):
        with pytest.raises(WeightsError, match=f'have no {lacking}'):
            layer.load_state_dict(state, strict=strict)

    assert not dense.is_sparse
    assert torch.equal(sparse(x), expected)


def test_a_layer_pickled_before_there_was_a_choice_becomes_sparse(x):
    old = SwitchNorm(4).double().eval()
    for name in ('mean_choice', 'var_choice'):
        del old._buffers[name]

    for layer in (copy.deepcopy(old), pickle.loads(pickle.dumps(old))):
        torch.testing.assert_close(torch.jit.script(layer)(x), layer(x))
        assert {'mean_choice', 'var_choice'} <= set(sparsify(layer).state_dict())


def test_each_group_of_ratios_chooses_by_itself(randomized, x):
    layer = randomized(SwitchNorm(4, scopes=('in', 'ln', 'bn'), num_ratio_groups=2)).double()
    with torch.no_grad():
        layer.mean_weight.copy_(torch.tensor([[1, 5, 2], [1, 2, 5]]))
        layer.var_weight.copy_(torch.tensor([[5, 1, 2], [2, 5, 1]]))

    sparsify(layer.eval())

    halves = [
        _expected(layer, x, 'ln', 'in')[:, :2],
        _expected(layer, x, 'bn', 'ln')[:, 2:],
    ]
    torch.testing.assert_close(layer(x), torch.cat(halves, 1))
    assert layer.mean_choice.tolist() == [1, 2] and layer.used_scopes == ('in', 'ln', 'bn')


def test_in_evaluation_batch_statistics_alone_do_not_read_the_input(make, x):
    layer = make('bn', 'bn').eval()
    x[0, 0, 0, 0] = float('inf')

    for backend in BUILT:
        with use_backend(backend):
            y = layer(x)
        # A statistic of the input would spread it.
        assert y.isinf().sum() == 1 and not y.isnan().any()


@pytest.mark.parametrize('backend', ON_CPU)
def test_in_evaluation_the_variance_is_computed_only_if_it_is_used(backend, make, x):
    layer = make('in', 'bn').float().eval()
    x = x.float() * 1e25  # whose square overflows, as the variance would

    with use_backend(backend):
        y = layer(x)

    assert y.isfinite().all()
    wide = copy.deepcopy(layer).double()
    torch.testing.assert_close(
        y.double(), _expected(wide, x.double(), 'in', 'bn'), rtol=1e-5, atol=1e20
    )


def test_running_statistics_move_only_if_they_are_used(make, x):
    for mean, var, moves in (('in', 'ln', False), ('in', 'bn', True), ('bn', 'ln', True)):
        layer = make(mean, var).train()
        before = layer.running_mean.clone()

        layer(x)

        assert torch.equal(layer.running_mean, before) != moves


@pytest.mark.parametrize('training', [True, False])
def test_scripted_and_compiled_as_eagerly(training, make, x):
    for mean, var in (('ln', 'bn'), ('bn', 'bn'), ('in', 'in')):
        layer = make(mean, var).train(training)
        expected = copy.deepcopy(layer)(x)

        torch.testing.assert_close(torch.jit.script(copy.deepcopy(layer))(x), expected)
        torch.testing.assert_close(
            torch.compile(copy.deepcopy(layer), backend='eager', fullgraph=True)(x), expected
        )


def test_a_sparse_layer_keeps_its_choice(make):
    layer = make('in', 'bn')
    with torch.no_grad():
        layer.mean_weight.zero_()[2] = 5

    sparsify(layer)

    assert layer.used_scopes == ('in', 'bn')


def test_what_cannot_become_sparse_is_refused_as_a_whole():
    with pytest.raises(ValueError, match='no SN layer'):
        sparsify(nn.BatchNorm2d(3))
    model = nn.Sequential(SwitchNorm(3), SwitchNorm(3))
    with torch.no_grad():
        model[1].var_weight[0] = float('nan')
    with pytest.raises(ValueError, match=r'of 1 are not finite'):
        sparsify(model)
    assert not model[0].is_sparse


def test_choices_are_copied_to_layers_of_the_same_name(make):
    source = nn.ModuleDict({'a': make('in', 'bn'), 'b': SwitchNorm(4, num_groups=2)})
    target = nn.ModuleDict({name: SwitchNorm(4, scopes=SCOPES, num_groups=2) for name in 'ab'})

    copy_choices(source, target)

    assert target['a'].used_scopes == ('in', 'bn') and not target['b'].is_sparse
    assert target['a'].mean_choice.data_ptr() != source['a'].mean_choice.data_ptr()


def test_ratios_stay_exact_under_autocast_and_in_half_precision(make, x):
    layer = make('ln', 'bn').float()
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, weight_decay=0.5)
    for _ in range(5):
        optimizer.zero_grad()
        with torch.autocast('cpu', torch.bfloat16):
            layer(x.float()).square().mean().backward()
        optimizer.step()

    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        mean, var = layer.to(dtype).importance_ratios()
        assert (mean.tolist(), var.tolist()) == ([0, 0, 1, 0], [0, 0, 0, 1])
