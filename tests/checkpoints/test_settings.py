"""Layers are compared with the settings that a checkpoint was trained with."""

import pytest
import torch
from torch import nn

from sn_openmmlab.checkpoints.settings import TrainedSettings, advise_correction
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.switch_norm import SwitchNorm

OTHER = ('bn', 'ln', 'in')


def plain(net: nn.Module) -> dict:
    """Return the weights without what the layers recorded."""
    return dict(net.state_dict())


def check(text: object, **built: object) -> None:
    """Check a layer against a config."""
    net = nn.ModuleDict({'norm': SwitchNorm(4, **built)})
    checkpoint = {'state_dict': plain(net), 'meta': {'cfg': text}}
    TrainedSettings(checkpoint, checkpoint['state_dict']).check(dict(net.named_children()))


def test_config_in_a_checkpoint_names_the_settings() -> None:
    text = "model = dict(norm_cfg=dict(type='SN', scopes=('bn', 'ln', 'in')))"
    check(text, scopes=OTHER)
    with pytest.raises(UsageError, match=r"norm was trained with scopes=\('bn', 'ln', 'in'\)"):
        check(text)
    with pytest.raises(UsageError, match='correction=0, but is built with correction=1: set corr'):
        check("model = dict(norm_cfg=dict(type='SN'))", correction=1)


def test_each_layer_has_one_of_several_settings() -> None:
    text = "model = dict(a=dict(type='SN', correction=1), b=[dict(type='SN', scopes=['in', 'bn'])])"
    check(text, correction=1)
    check(text, scopes=('in', 'bn'))
    # The message names the nearest setting.
    with pytest.raises(UsageError, match=r'with correction=0.*set correction=0 in its norm'):
        check(text, scopes=('in', 'bn'), correction=1)
    with pytest.raises(UsageError, match='trained with correction=1'):
        check(text)


@pytest.mark.parametrize('text', [None, '', "model = dict(norm_cfg=dict(type='BN'))"])
def test_config_without_sn_allows_every_setting(text: object) -> None:
    check(text, scopes=OTHER, correction=1)


def test_records_of_the_layers_go_before_the_config() -> None:
    net = nn.ModuleDict({'a': SwitchNorm(4, scopes=OTHER), 'b': SwitchNorm(4, correction=1)})
    state = net.state_dict()
    trained = TrainedSettings(
        {'state_dict': state, 'meta': {'cfg': "model = dict(norm_cfg=dict(type='SN'))"}}, state
    )
    trained.check(dict(net.named_children()))
    with pytest.raises(UsageError, match=r'the SN layer b was trained with correction=1'):
        trained.check({'b': SwitchNorm(4)})


def test_note_of_the_converter_tells_only_the_scopes() -> None:
    state = plain(nn.ModuleDict({'a': SwitchNorm(4)}))
    meta = dict(converter='sn_openmmlab', layout='detection-fpn', scopes=['in', 'ln', 'bn'])
    trained = TrainedSettings({'state_dict': state, 'meta': meta}, state)
    assert trained.of_authors
    for correction in (0, 1):
        trained.check({'a': SwitchNorm(4, correction=correction)})
    with pytest.raises(UsageError, match='the SN layer a was trained with scopes='):
        trained.check({'a': SwitchNorm(4, scopes=OTHER)})


@pytest.mark.parametrize(
    ('meta', 'of_authors'),
    [
        ({}, False),
        (dict(converter='x', layout='ade20k'), True),
        (dict(converter='x', layout='resnet-bn'), False),
        (dict(layout='imagenet'), False),
    ],
)
def test_files_of_the_authors_are_known_by_their_converter(meta: dict, of_authors: bool) -> None:
    assert TrainedSettings({'meta': meta}, {}).of_authors == of_authors


def test_number_of_scopes_is_checked_if_nothing_else_is_known() -> None:
    state = {'a.mean_weight': torch.ones(2)}
    trained = TrainedSettings({'state_dict': state}, state)
    trained.check({'a': SwitchNorm(4, scopes=('ln', 'bn')), 'renamed': SwitchNorm(4)})
    with pytest.raises(UsageError, match='it mixes 2 scopes, but the SN layer a mixes in, ln, bn'):
        trained.check({'a': SwitchNorm(4)})


def test_missing_correction_of_the_authors_is_advised() -> None:
    assert advise_correction({'a': SwitchNorm(4, correction=1)}) is None
    layers = {'a': SwitchNorm(4, correction=1), 'b': SwitchNorm(4)}
    assert '1 SN layers that get them have correction=0, such as b: ' in advise_correction(layers)
