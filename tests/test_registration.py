"""Importing the package makes the layer known to every toolbox, and needs none of them."""

import importlib
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from mmcv.cnn import build_norm_layer
from mmengine.registry import HOOKS, MODELS, WEIGHT_INITIALIZERS, DefaultScope

import sn_openmmlab
from sn_openmmlab import registration
from sn_openmmlab.checkpoints.pretrained import SNPretrained
from sn_openmmlab.hooks.norm_check_hook import NormCheckHook
from sn_openmmlab.hooks.sparsify_hook import SparsifyHook
from sn_openmmlab.layers.batch_average import batch_average, update_bn
from sn_openmmlab.layers.batch_renorm import BatchRenorm
from sn_openmmlab.layers.convert.calibration import calibrate_switch_norm
from sn_openmmlab.layers.convert.from_batch_norm import convert_batch_norm
from sn_openmmlab.layers.convert.inflate import inflate_module, inflate_weights
from sn_openmmlab.layers.convert.ratio_groups import split_ratio_weights, split_ratios
from sn_openmmlab.layers.convert.sync import convert_sync_switch_norm, revert_sync_switch_norm
from sn_openmmlab.layers.sparse import sparsify
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm

ROOT = Path(sn_openmmlab.__file__).parents[1]
LAYERS = {**dict.fromkeys(['SN', 'SN1d', 'SN2d', 'SN3d'], SwitchNorm), 'SyncSN': SyncSwitchNorm}
SCOPES = ['mmengine', 'mmdet', 'mmseg', 'mmpretrain']


def _python(code, cwd):
    """Run ``code`` in a second process that finds the package and nothing else of the project."""
    setup = f'import sys; sys.path.insert(0, {str(ROOT)!r})\n'
    done = subprocess.run(
        [sys.executable, '-c', setup + dedent(code)], cwd=cwd, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize('alias', LAYERS)
def test_the_root_registry_knows_the_layers_by_their_names(alias):
    assert MODELS.get(alias) is LAYERS[alias]


@pytest.mark.parametrize('alias', ['BRN', 'BRN1d', 'BRN2d', 'BRN3d'])
@pytest.mark.parametrize('scope', SCOPES)
def test_the_toolboxes_build_batch_renorm(scope, alias):
    with DefaultScope.overwrite_default_scope(scope):
        _, layer = build_norm_layer({'type': alias, 'r_max': 2.0}, 8)
    assert type(layer) is BatchRenorm
    assert (layer.num_features, layer.r_max) == (8, 2.0)


@pytest.mark.parametrize('scope', SCOPES)
def test_the_weight_initializer_is_found_by_its_name(scope):
    with DefaultScope.overwrite_default_scope(scope):
        initializer = WEIGHT_INITIALIZERS.build({'type': 'SNPretrained', 'checkpoint': 'a.pth'})

    assert type(initializer) is SNPretrained
    assert initializer.checkpoint == 'a.pth'


@pytest.mark.parametrize('scope', SCOPES)
def test_the_hooks_are_found_by_their_names(scope):
    with DefaultScope.overwrite_default_scope(scope):
        assert type(HOOKS.build({'type': 'NormCheckHook'})) is NormCheckHook
        assert type(HOOKS.build({'type': 'SparsifyHook', 'begin': 1})) is SparsifyHook


@pytest.mark.parametrize('alias', LAYERS)
@pytest.mark.parametrize('scope', SCOPES)
def test_the_toolboxes_build_it_and_name_it_sn(scope, alias):
    cfg = {'type': alias, 'scopes': ['gn', 'bn'], 'num_groups': 2, 'momentum': 0.3}
    with DefaultScope.overwrite_default_scope(scope):
        name, layer = build_norm_layer(cfg, 8, postfix=1)

    assert name == 'sn1'
    assert type(layer) is LAYERS[alias]
    assert layer.num_features == 8
    assert (layer.scopes, layer.num_groups, layer.momentum) == (('gn', 'bn'), 2, 0.3)
    assert all(parameter.requires_grad for parameter in layer.parameters())


def test_requires_grad_false_freezes_all_of_its_parameters():
    _, layer = build_norm_layer({'type': 'SN', 'requires_grad': False}, 8)

    trained = {name: parameter.requires_grad for name, parameter in layer.named_parameters()}
    assert trained == dict.fromkeys(['weight', 'bias', 'mean_weight', 'var_weight'], False)


def test_a_config_needs_only_the_custom_import(tmp_path):
    (tmp_path / 'config.py').write_text(
        "custom_imports = dict(imports=['sn_openmmlab'], allow_failed_imports=False)\n"
        "norm_cfg = dict(type='SN')\n"
    )
    lines = _python(
        """
        from mmcv.cnn import build_norm_layer
        from mmengine.config import Config

        assert 'sn_openmmlab' not in sys.modules
        config = Config.fromfile('config.py')
        print(*build_norm_layer(config.norm_cfg, 8, postfix='_head'))
        """,
        tmp_path,
    )

    assert len(lines) == 1
    assert lines[0].startswith('sn_head SwitchNorm(8, eps=1e-05, momentum=0.1, affine=True')


BLOCKED_BY_MODULES = "sys.modules['mmengine'] = None"
# As where it is not installed: no finder finds it.
BLOCKED_BY_FINDERS = """
class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, *rest):
        return None if name == 'mmengine' else self.finder.find_spec(name, *rest)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""


@pytest.mark.parametrize(
    'blocked', [BLOCKED_BY_MODULES, BLOCKED_BY_FINDERS], ids=['modules', 'finders']
)
def test_without_mmengine_the_layer_still_works(blocked, tmp_path):
    code = """
        try:
            import mmengine
        except ImportError:
            print('blocked')
        import torch
        import sn_openmmlab
        from sn_openmmlab.layers.switch_norm import SwitchNorm

        layer = SwitchNorm(2, scopes=('in', 'ln'), eps=0)
        print(layer(torch.tensor([[[-1.0, 1.0], [-1.0, 1.0]]])).flatten().tolist())
        print([name for name in sys.modules if name.split('.')[0] in ('mmengine', 'mmcv')
               and sys.modules[name] is not None])
        """
    lines = _python(blocked + dedent(code), tmp_path)

    assert lines == ['blocked', '[-1.0, 1.0, -1.0, 1.0]', '[]']


def test_importing_and_reloading_it_again_does_no_harm():
    importlib.import_module('sn_openmmlab')
    importlib.reload(sn_openmmlab)

    assert MODELS.get('SN') is SwitchNorm
    name, layer = build_norm_layer({'type': 'SN'}, 8)
    assert (name, type(layer)) == ('sn', SwitchNorm)


@pytest.mark.parametrize('alias', ['SN', 'SyncSN'])
def test_reloading_registers_anew_and_another_projects_layer_is_kept(
    alias: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    importlib.reload(registration)
    assert MODELS.get(alias) is LAYERS[alias]

    class Foreign:
        """A layer of another project."""

    monkeypatch.setitem(MODELS.module_dict, alias, Foreign)
    with pytest.raises(KeyError, match=f'{alias} is already registered'):
        importlib.reload(registration)
    assert MODELS.get(alias) is Foreign


def test_the_public_names_are_the_layers_and_the_conversions():
    public = {
        'BatchRenorm': BatchRenorm,
        'SwitchNorm': SwitchNorm,
        'SyncSwitchNorm': SyncSwitchNorm,
        'convert_batch_norm': convert_batch_norm,
        'update_bn': update_bn,
        'batch_average': batch_average,
        'calibrate_switch_norm': calibrate_switch_norm,
        'convert_sync_switch_norm': convert_sync_switch_norm,
        'revert_sync_switch_norm': revert_sync_switch_norm,
        'inflate_module': inflate_module,
        'inflate_weights': inflate_weights,
        'sparsify': sparsify,
        'split_ratio_weights': split_ratio_weights,
        'split_ratios': split_ratios,
    }
    assert {name: getattr(sn_openmmlab, name) for name in sn_openmmlab.__all__} == public
