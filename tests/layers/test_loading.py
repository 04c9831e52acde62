"""Weights that were trained with other settings are refused."""

import copy
import io
import warnings

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize, prune

from sn_openmmlab.errors import UsageError, WeightsError
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm

OPTIONS = {'scopes': ('in', 'gn', 'ln'), 'num_groups': 2, 'correction': 0}
OTHERS = [
    {'scopes': ('ln', 'gn', 'in')},
    {'scopes': ('in', 'gn', 'bn')},
    {'scopes': ('in', 'ln')},
    {'scopes': ('in', 'gn', 'ln', 'bn')},
    {'correction': 1},
    {'num_groups': 4},
]


def _model(randomized, kind=SwitchNorm, **options):
    layer = randomized(kind(4, **{**OPTIONS, **options}))
    return nn.ModuleDict({'conv': nn.Conv2d(3, 4, 3), 'norm': layer})


def _through_a_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.parametrize('strict', [True, False])
@pytest.mark.parametrize('assign', [True, False])
@pytest.mark.parametrize('other', OTHERS, ids=str)
def test_weights_that_were_trained_with_other_settings(other, assign, strict, randomized):
    state = _through_a_file(_model(randomized, **other).state_dict())
    model = _model(randomized)
    before = copy.deepcopy(model['norm'].state_dict())
    field, value = next(iter(other.items()))

    with pytest.raises(WeightsError) as error:
        model.load_state_dict(state, strict=strict, assign=assign)

    message = str(error.value)
    assert message.startswith('The weights do not fit: the SN layer norm was trained with ')
    assert f'{field}={value!r}' in message.partition(', but is built with ')[0]
    assert f'{field}={OPTIONS[field]!r}' in message.partition(', but is built with ')[2]
    assert f': set {field}={value!r}' in message and message.endswith(' in its norm_cfg.')
    torch.testing.assert_close(model['norm'].state_dict(), before, rtol=0, atol=0)


def test_the_error_is_a_usage_error_and_a_runtime_error():
    assert issubclass(WeightsError, UsageError) and issubclass(WeightsError, RuntimeError)


@pytest.mark.parametrize('source', [SwitchNorm, SyncSwitchNorm])
@pytest.mark.parametrize('target', [SwitchNorm, SyncSwitchNorm])
@pytest.mark.parametrize('assign', [True, False])
def test_weights_of_the_same_settings_load(source, target, assign, randomized):
    state = _through_a_file(_model(randomized, source).state_dict())
    model = _model(randomized, target)

    model.load_state_dict(state, assign=assign)

    torch.testing.assert_close(dict(model.state_dict()), dict(state), rtol=0, atol=0)


def test_num_groups_without_gn_and_other_options_do_not_matter(randomized):
    options = {'scopes': ('in', 'bn'), 'num_groups': 2}
    state = _model(randomized, **options).state_dict()
    model = _model(randomized, **{**options, 'num_groups': 32}, eps=1e-3, momentum=None)

    model.load_state_dict(state)


@pytest.mark.parametrize('other', [OTHERS[0], *OTHERS[4:]], ids=str)
def test_weights_without_a_record_load_as_before(other, randomized):
    state = _model(randomized, **other).state_dict()
    model = _model(randomized)

    model.load_state_dict(dict(state), strict=False)

    torch.testing.assert_close(model['norm'].mean_weight.data, state['norm.mean_weight'])


@pytest.mark.parametrize('strict', [True, False])
@pytest.mark.parametrize('name', ['mean_weight', 'var_weight'])
def test_a_wrong_number_of_control_parameters(name, strict, randomized):
    model = _model(randomized)
    state = dict(model.state_dict())
    state[f'norm.{name}'] = torch.ones(2)

    with pytest.raises(
        WeightsError,
        match=r'the SN layer norm was trained with 2 scopes, but is built with 3, '
        r"scopes=\('in', 'gn', 'ln'\): set the scopes that it was trained with in its norm_cfg\.$",
    ):
        model.load_state_dict(state, strict=strict)


def test_a_layer_by_itself(randomized):
    layer = randomized(SwitchNorm(4))

    with pytest.raises(WeightsError, match='the SN layer was trained with correction=1'):
        layer.load_state_dict(SwitchNorm(4, correction=1).state_dict())


def test_a_wrapped_model_loads_what_it_saved_and_refuses_others(randomized):
    wrapped = nn.DataParallel(_model(randomized))

    wrapped.load_state_dict(_through_a_file(wrapped.state_dict()))
    with pytest.raises(WeightsError, match=r'the SN layer module\.norm was trained'):
        wrapped.load_state_dict(nn.DataParallel(_model(randomized, correction=1)).state_dict())


@pytest.mark.filterwarnings('error')
def test_weights_that_lack_those_of_the_layer_load(randomized):
    state = _model(randomized, correction=1).state_dict()
    for name in [name for name in state if name.startswith('norm.')]:
        del state[name]

    _model(randomized).load_state_dict(state, strict=False)


def test_meta_tensors(randomized):
    state = _model(randomized).state_dict()
    with torch.device('meta'):
        model = nn.ModuleDict({'conv': nn.Conv2d(3, 4, 3), 'norm': SwitchNorm(4, **OPTIONS)})

    model.load_state_dict(state, assign=True)

    torch.testing.assert_close(dict(model.state_dict()), dict(state))


def _load_batch_norm(model):
    state = {'norm.weight': torch.ones(4), 'norm.bias': torch.zeros(4)}
    model.load_state_dict(state, strict=False)


def test_weights_without_ratios_give_one_warning(randomized):
    models = [_model(randomized) for _ in range(3)]

    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()  # as outside of tests: each once for its place
        for model in models:
            _load_batch_norm(model)

    (warning,) = caught
    assert 'SNPretrained' in str(warning.message)
    assert 'convert_batch_norm' in str(warning.message)


@pytest.mark.parametrize('name', ['weight', 'bias', 'running_mean', 'running_var'])
def test_each_of_the_weights_of_batch_norm_warns(name):
    with pytest.warns(UserWarning, match='without the importance ratios'):
        SwitchNorm(4).load_state_dict({name: torch.ones(4)}, strict=False)


@pytest.mark.filterwarnings('error')
def test_no_warning_where_the_control_parameters_have_another_name(randomized):
    class Same(nn.Module):
        def forward(self, control):
            return control

    parametrized, pruned = _model(randomized), _model(randomized)
    parametrize.register_parametrization(parametrized['norm'], 'mean_weight', Same())
    parametrize.register_parametrization(parametrized['norm'], 'var_weight', Same())
    prune.identity(pruned['norm'], 'mean_weight')
    prune.identity(pruned['norm'], 'var_weight')

    for model in (parametrized, pruned):
        model.load_state_dict(model.state_dict())


def test_a_subclass_loads_with_hooks_of_its_own(randomized):
    class Layer(SwitchNorm):
        def _load_from_state_dict(self, state_dict, prefix, *args):
            state_dict[f'{prefix}mean_weight'] = state_dict.pop(f'{prefix}lambda')
            super()._load_from_state_dict(state_dict, prefix, *args)

    state = randomized(SwitchNorm(4)).state_dict()
    state['lambda'] = control = state.pop('mean_weight')
    layer = Layer(4)

    layer.load_state_dict(state)

    torch.testing.assert_close(layer.mean_weight.data, control)
