"""The SN settings in a stored config are read without running it."""

from pathlib import Path

import pytest
from mmengine.config import Config

from sn_openmmlab.checkpoints.files.stored_config import configured_settings
from sn_openmmlab.layers.settings import MixSettings

SCOPES = ('bn', 'ln', 'in')


def read(text: object) -> list[MixSettings]:
    return configured_settings({'meta': {'cfg': text}})


@pytest.mark.parametrize(
    'cfg',
    [
        dict(type='SN', scopes=SCOPES),
        dict(type='SN2d', scopes=SCOPES, requires_grad=False),
        dict(type='SyncSN', scopes=list(SCOPES)),
        dict(type='mmengine.SN', scopes=SCOPES),
        dict(type='sn_openmmlab.layers.switch_norm.SwitchNorm', scopes=SCOPES),
    ],
    ids=lambda cfg: cfg['type'],
)
def test_scopes_are_found_wherever_they_are(cfg: dict) -> None:
    text = Config(dict(model=dict(backbone=dict(stages=[dict(norm_cfg=cfg)])))).pretty_text
    assert read(text) == [MixSettings(SCOPES, 0, None)]


def test_settings_that_the_config_leaves_out_are_the_defaults_of_the_layer() -> None:
    default = MixSettings(('in', 'ln', 'bn'), 0, None)
    assert read("model = dict(norm_cfg=dict(type='SN'))") == [default]
    text = (
        "model = {'a': {'type': 'SN', 'correction': 1}, 'b': {'type': 'SN'}, 'c': {'type': 'SN'}}"
    )
    assert read(text) == [default._replace(correction=1), default]
    groups = "model = dict(type='SN', scopes=('in', 'gn', 'bn'), num_groups=8)"
    assert read(groups) == [MixSettings(('in', 'gn', 'bn'), 0, 8)]


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
def test_config_without_readable_settings_gives_none(text: object) -> None:
    assert read(text) == []


@pytest.mark.parametrize('checkpoint', [{}, {'meta': None}, {'meta': {}}, {'meta': ['cfg']}])
def test_checkpoint_without_a_config_gives_none(checkpoint: dict) -> None:
    assert configured_settings(checkpoint) == []


def test_config_is_not_run(tmp_path: Path) -> None:
    marker = tmp_path / 'marker'
    read(f"model = dict(norm_cfg=dict(type='SN', scopes=open({str(marker)!r}, 'w')))")
    read(f"model = __import__('pathlib').Path({str(marker)!r}).touch()")
    assert not marker.exists()
