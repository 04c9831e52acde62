"""A config's BatchNorm is swapped for SN by one option."""

from pathlib import Path
from typing import Any

import pytest
from mmengine.config import Config, ConfigDict
from mmengine.registry import MODELS

from sn_openmmlab import SwitchNorm
from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.norm_swap import convert_norms
from tests.segmenter import FCN

pytestmark = pytest.mark.usefixtures('mmseg_scope')


def test_option_wraps_the_model_and_names_the_import() -> None:
    config = Config(dict(model=FCN, custom_imports=dict(imports=['ours'])))
    convert_norms(config)
    assert config.model == dict(FCN, type='WithSN', of='EncoderDecoder', norm_cfg=dict(type='SN'))
    assert config.custom_imports == dict(
        imports=['ours', 'sn_openmmlab'], allow_failed_imports=False
    )
    convert_norms(config)
    assert config.model.of == 'EncoderDecoder'
    assert config.custom_imports.imports == ['ours', 'sn_openmmlab']


@pytest.mark.parametrize(
    ('norm_cfg', 'taken'),
    [
        (dict(type='SN', correction=1), dict(type='SN', correction=1)),
        (dict(type='SyncSN', requires_grad=True), dict(type='SyncSN', requires_grad=True)),
        (dict(type='BN', requires_grad=True), dict(type='SN')),
        (None, dict(type='SN')),
    ],
)
def test_option_takes_the_norm_at_the_top_of_the_config(norm_cfg: Any, taken: dict) -> None:
    config = Config(dict(model=FCN, norm_cfg=norm_cfg))
    convert_norms(config)
    assert config.model.norm_cfg == taken
    assert isinstance(config.model, ConfigDict)


def test_option_takes_a_config_in_pure_python(tmp_path: Path) -> None:
    file = tmp_path / 'pure.py'
    file.write_text(
        'from mmengine.config import read_base\n'
        'from mmseg.models.backbones import ResNet\n'
        'from mmseg.models.segmentors import EncoderDecoder\n'
        f'model = {FCN!r}\n'
        'model.update(type=EncoderDecoder)\n'
        'model["backbone"].update(type=ResNet)\n'
    )
    config = Config.fromfile(file)
    convert_norms(config)
    config.dump(tmp_path / 'dumped.py')
    for wrapped in (config, Config.fromfile(tmp_path / 'dumped.py')):
        model = MODELS.build(wrapped.model)
        assert type(model).__name__ == 'EncoderDecoder'
        assert sum(isinstance(layer, SwitchNorm) for layer in model.modules()) == 20


def test_option_does_not_take_a_key_of_the_model() -> None:
    with pytest.raises(UsageError, match='cannot wrap a model that has norm_cfg of its own'):
        convert_norms(Config(dict(model=dict(FCN, norm_cfg=dict(type='BN')))))
