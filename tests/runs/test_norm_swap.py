"""A config's norms are replaced by one option."""

from pathlib import Path

import pytest
from mmengine.config import Config, ConfigDict
from mmengine.hooks import EMAHook
from mmengine.registry import MODELS

from sn_openmmlab import SwitchNorm
from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.norm_swap import read_norm, replace_norms
from tests.segmenter import FCN

pytestmark = pytest.mark.usefixtures('mmseg_scope')
HOOKS = [dict(type='NormCheckHook'), dict(type='BatchNormWeightsHook')]


def test_model_is_wrapped_and_the_config_names_what_it_needs() -> None:
    config = Config(dict(model=FCN, custom_imports=dict(imports=['ours']), load_from='bn.pth'))
    replace_norms(config)
    expected = dict(FCN, type='WithNorm', of='EncoderDecoder', norm_cfg=dict(type='SN'))
    assert config.model == expected
    assert isinstance(config.model, ConfigDict)
    assert config.custom_imports == dict(
        imports=['ours', 'sn_openmmlab'], allow_failed_imports=False
    )
    assert config.custom_hooks == HOOKS
    assert config.load_from == 'bn.pth'


def test_doing_it_again_changes_the_norm_and_the_parts_only() -> None:
    config = Config(dict(model=FCN, custom_hooks=[dict(type='EMAHook')]))
    replace_norms(config, dict(type='SyncSN', scopes=('in', 'ln')), ['backbone'])
    assert config.model.norm_parts == ['backbone']
    assert config.model.norm_cfg == dict(type='SyncSN', scopes=('in', 'ln'))
    replace_norms(config, 'SN')
    assert config.model == dict(FCN, type='WithNorm', of='EncoderDecoder', norm_cfg=dict(type='SN'))
    assert config.custom_hooks == [dict(type='EMAHook'), *HOOKS]
    assert config.custom_imports.imports == ['sn_openmmlab']


def test_weights_are_converted_for_sn_only() -> None:
    config = Config(dict(model=FCN))
    replace_norms(config, 'GN')
    assert config.custom_hooks == HOOKS[:1]


def test_a_config_in_pure_python_is_taken(tmp_path: Path) -> None:
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
    replace_norms(config)
    config.dump(tmp_path / 'dumped.py')
    for wrapped in (config, Config.fromfile(tmp_path / 'dumped.py')):
        model = MODELS.build(wrapped.model)
        assert type(model).__name__ == 'EncoderDecoder'
        assert sum(isinstance(layer, SwitchNorm) for layer in model.modules()) == 21


def test_hooks_may_be_objects_but_must_be_a_list() -> None:
    hook = EMAHook()
    config = Config(dict(model=FCN, custom_hooks=[hook]))
    replace_norms(config)
    assert config.custom_hooks == [hook, *HOOKS]
    with pytest.raises(UsageError, match='custom_hooks of the config must be a list of hooks'):
        replace_norms(Config(dict(model=FCN, custom_hooks={'0': dict(type='EMAHook')})))


@pytest.mark.parametrize('key', ['norm_cfg', 'norm_parts', 'of'])
def test_a_model_with_a_key_of_that_name_is_refused(key: str) -> None:
    with pytest.raises(UsageError, match=f'cannot wrap a model that has {key} of its own'):
        replace_norms(Config(dict(model={**FCN, key: 1})))


@pytest.mark.parametrize(
    ('text', 'norm'),
    [
        ('SN', 'SN'),
        ('SyncSN', 'SyncSN'),
        ('SN ', 'SN'),
        ("dict(type='SN', scopes=('in', 'ln'))", dict(type='SN', scopes=('in', 'ln'))),
        ('dict(type="GN", num_groups=8)', dict(type='GN', num_groups=8)),
        ("{'type': 'SN', 'eps': 1e-3}", dict(type='SN', eps=1e-3)),
    ],
)
def test_norm_is_read_from_the_command_line(text: str, norm: object) -> None:
    assert read_norm(text) == norm


@pytest.mark.parametrize(
    'text',
    [
        '',
        'dict(',
        'dict()',
        "dict(type=['SN'])",
        "dict('SN')",
        'dict(type=SN)',
        '5',
        "['SN']",
        '{}',
        'open("x")',
        'torch.nn.Identity',
        'a b',
    ],
)
def test_anything_else_is_refused_without_running_it(text: str) -> None:
    with pytest.raises(UsageError, match='--norm takes a name or a dict with a type, not '):
        read_norm(text)
