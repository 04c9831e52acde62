"""A state dict records the settings of its layers."""

import copy
import io

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call

from sn_openmmlab.layers.convert.from_batch_norm import convert_batch_norm
from sn_openmmlab.layers.convert.sync import convert_sync_switch_norm
from sn_openmmlab.layers.settings import (
    MixSettings,
    mismatch,
    record_settings,
    recorded_settings,
    settings_of,
)
from sn_openmmlab.layers.switch_norm import SwitchNorm

USUAL = MixSettings(('in', 'ln', 'bn'), 0, None)
GROUPS = MixSettings(('gn', 'bn'), 1, 2)


def _model():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.Sequential(
            SwitchNorm(4), SwitchNorm(4, scopes=['gn', 'bn'], num_groups=2, correction=1)
        ),
    )


def test_each_layer_is_recorded_under_its_name_and_others_are_not():
    assert recorded_settings(_model().state_dict()) == {'1.0': USUAL, '1.1': GROUPS}


def test_no_key_is_new():
    keys = SwitchNorm(4).state_dict().keys()

    assert set(keys) == {
        *('weight', 'bias', 'mean_weight', 'var_weight'),
        *('running_mean', 'running_var', 'num_batches_tracked'),
    }


def test_the_settings_of_a_layer():
    assert settings_of(SwitchNorm(4)) == USUAL
    assert settings_of(SwitchNorm(4, scopes=('gn', 'bn'), num_groups=2, correction=1)) == GROUPS


@pytest.mark.parametrize('weights_only', [True, False])
def test_the_record_survives_a_file_and_a_deep_copy(weights_only):
    file = io.BytesIO()
    torch.save({'state_dict': copy.deepcopy(_model().state_dict())}, file)
    file.seek(0)

    state = torch.load(file, weights_only=weights_only)['state_dict']

    assert recorded_settings(state) == {'1.0': USUAL, '1.1': GROUPS}


def test_the_record_is_of_plain_types():
    class Name(str):
        pass

    state = SwitchNorm(4, scopes=[Name('in'), Name('ln')], correction=np.int64(1)).state_dict()

    record = state._metadata['']
    assert record == {'version': 2, 'scopes': ['in', 'ln'], 'correction': 1}
    assert {type(scope) for scope in record['scopes']} == {str}
    assert type(record['correction']) is int


def test_converted_layers_are_recorded():
    model = nn.Sequential(nn.BatchNorm2d(4), SwitchNorm(4))

    convert_batch_norm(model, scopes=('bn', 'in'), correction=1)
    convert_sync_switch_norm(model)

    bn = MixSettings(('bn', 'in'), 1, None)
    assert recorded_settings(model.state_dict()) == {'0': bn, '1': USUAL}


def test_names_are_those_of_the_weights_in_a_wrapped_model():
    wrapped = nn.DataParallel(_model())

    assert recorded_settings(wrapped.state_dict()).keys() == {'module.1.0', 'module.1.1'}


@pytest.mark.parametrize('metadata', [None, {}, {'': None}, {'': {'version': 2}}, 'none', 7])
def test_nothing_is_found_where_nothing_is_recorded(metadata):
    state = nn.BatchNorm2d(4).state_dict()
    state._metadata = metadata

    assert recorded_settings(state) == {}
    assert recorded_settings(dict(SwitchNorm(4).state_dict())) == {}


@pytest.mark.parametrize(
    'record',
    [
        {'scopes': 'in', 'correction': 0},
        {'scopes': [1, 2], 'correction': 0},
        {'scopes': ['in'], 'correction': '0'},
        {'scopes': ['gn'], 'correction': 0, 'num_groups': [2]},
        {'scopes': ['in']},
    ],
    ids=str,
)
def test_records_of_other_programs_under_these_names_are_ignored(record):
    state = SwitchNorm(4).state_dict()
    state._metadata = {'': record}

    assert recorded_settings(state) == {}


def test_a_destination_without_metadata_stays_without():
    destination = {}

    found = SwitchNorm(4).state_dict(destination=destination)
    record_settings(USUAL, destination, 'layer.')

    assert found is destination and not hasattr(destination, '_metadata')


def test_functional_calls_take_the_state_dict():
    layer, x = SwitchNorm(4).eval(), torch.randn(2, 4, 3, 3)

    y = functional_call(layer, layer.state_dict(), (x,))

    torch.testing.assert_close(y, layer(x))


def test_the_sentence_names_the_layer_both_settings_and_what_to_set():
    built = MixSettings(('ln', 'in', 'bn'), 0, None)

    assert mismatch('neck.norm', USUAL, built) == (
        "the SN layer neck.norm was trained with scopes=('in', 'ln', 'bn'), but is built with "
        "scopes=('ln', 'in', 'bn'): set scopes=('in', 'ln', 'bn') in its norm_cfg."
    )


@pytest.mark.parametrize(
    ('trained', 'built', 'theirs', 'ours'),
    [
        (USUAL, USUAL._replace(correction=1), 'correction=0', 'correction=1'),
        (GROUPS, GROUPS._replace(num_groups=4), 'num_groups=2', 'num_groups=4'),
        (
            GROUPS,
            USUAL,
            "scopes=('gn', 'bn'), correction=1, num_groups=2",
            "scopes=('in', 'ln', 'bn'), correction=0",
        ),
        (
            USUAL._replace(correction=1),
            GROUPS,
            "scopes=('in', 'ln', 'bn')",
            "scopes=('gn', 'bn')",
        ),
    ],
)
def test_only_what_differs_is_named(trained, built, theirs, ours):
    assert mismatch('', trained, built) == (
        f'the SN layer was trained with {theirs}, but is built with {ours}: set {theirs} in its '
        'norm_cfg.'
    )


@pytest.mark.parametrize('settings', [USUAL, GROUPS])
def test_the_same_settings_have_no_sentence(settings):
    assert mismatch('bn1', settings, settings) is None
    assert mismatch('bn1', settings._replace(num_groups=None), settings) is None
