"""What a checkpoint says of the settings of its SN layers, without running what it holds."""

from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from torch import nn

from sn_openmmlab.checkpoints.settings import TrainedSettings, advise_correction
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.switch_norm import SwitchNorm

OTHER = ('bn', 'ln', 'in')


def plain(net: nn.Module) -> dict:
    """The weights without what the layers record beside them."""
    return dict(net.state_dict())


def check(text: object, **built: object) -> None:
    """Hold a layer against a config."""
    net = nn.ModuleDict({'norm': SwitchNorm(4, **built)})
    checkpoint = {'state_dict': plain(net), 'meta': {'cfg': text}}
    TrainedSettings(checkpoint, checkpoint['state_dict']).check(dict(net.named_children()))


@pytest.mark.parametrize(
    'cfg',
    [
        dict(type='SN', scopes=OTHER),
        dict(type='SN2d', scopes=OTHER, requires_grad=False),
        dict(type='SyncSN', scopes=list(OTHER)),
        dict(type='mmengine.SN', scopes=OTHER),
        dict(type='sn_openmmlab.layers.switch_norm.SwitchNorm', scopes=OTHER),
    ],
    ids=lambda cfg: cfg['type'],
)
def test_config_in_a_checkpoint_names_the_scopes(cfg: dict) -> None:
    text = Config(dict(model=dict(backbone=dict(stages=[dict(norm_cfg=cfg)])))).pretty_text
    check(text, scopes=OTHER)
    with pytest.raises(UsageError, match=r"norm was trained with scopes=\('bn', 'ln', 'in'\)"):
        check(text)


def test_defaults_of_the_layer_are_those_of_a_config() -> None:
    check("model = dict(norm_cfg=dict(type='SN'))")
    with pytest.raises(UsageError, match='correction=0, but is built with correction=1: set corr'):
        check("model = dict(norm_cfg=dict(type='SN'))", correction=1)
    check("model = dict(norm_cfg={'type': 'SN', 'correction': 1})", correction=1)


def test_each_layer_has_one_of_several_settings() -> None:
    text = "model = dict(a=dict(type='SN', correction=1), b=[dict(type='SN', scopes=['in', 'bn'])])"
    check(text, correction=1)
    check(text, scopes=('in', 'bn'))
    # Told of the setting that is nearest.
    with pytest.raises(UsageError, match=r'with correction=0.*set correction=0 in its norm'):
        check(text, scopes=('in', 'bn'), correction=1)
    with pytest.raises(UsageError, match='trained with correction=1'):
        check(text)


@pytest.mark.parametrize(
    'text',
    [
        None,
        5,
        '',
        'model = dict(',
        'model = dict()',
        "model = dict(norm_cfg=dict(type='BN', scopes=('in',)))",
        "norm_cfg = dict(type='SN', correction=1)\nmodel = dict()",
        "model = dict(norm_cfg=dict(type='SN', scopes=scopes, correction=1))",
        "model = dict(norm_cfg=dict(type='SN', scopes=5))",
        '(' * 10_000,
        'model = "\0"',
    ],
)
def test_config_that_names_nothing_says_nothing(text: object) -> None:
    check(text)


def test_config_is_not_run(tmp_path: Path) -> None:
    marker = tmp_path / 'marker'
    check(f"model = dict(norm_cfg=dict(type='SN', scopes=open({str(marker)!r}, 'w')))")
    check(f"model = __import__('pathlib').Path({str(marker)!r}).touch()")
    assert not marker.exists()


def test_what_a_layer_recorded_counts_more_than_the_config() -> None:
    net = nn.ModuleDict({'a': SwitchNorm(4, scopes=OTHER), 'b': SwitchNorm(4, correction=1)})
    state = net.state_dict()
    trained = TrainedSettings(
        {'state_dict': state, 'meta': {'cfg': "model = dict(norm_cfg=dict(type='SN'))"}}, state
    )
    trained.check(dict(net.named_children()))
    with pytest.raises(UsageError, match=r'the SN layer b was trained with correction=1'):
        trained.check({'b': SwitchNorm(4)})


def test_note_of_the_converter_tells_the_scopes_alone() -> None:
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


def test_number_is_held_to_where_nothing_else_is_known() -> None:
    state = {'a.mean_weight': torch.ones(2)}
    trained = TrainedSettings({'state_dict': state}, state)
    trained.check({'a': SwitchNorm(4, scopes=('ln', 'bn')), 'renamed': SwitchNorm(4)})
    with pytest.raises(UsageError, match='it mixes 2 scopes, but the SN layer a mixes in, ln, bn'):
        trained.check({'a': SwitchNorm(4)})


def test_correction_of_the_authors_is_advised_where_it_is_not_set() -> None:
    assert advise_correction({'a': SwitchNorm(4, correction=1)}) is None
    layers = {'a': SwitchNorm(4, correction=1), 'b': SwitchNorm(4)}
    assert '1 SN layers that get them have correction=0, such as b: ' in advise_correction(layers)
