"""Operation counters count the layers as they count InstanceNorm."""

import copy
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest
import torch
from mmengine.analysis import ActivationAnalyzer, FlopAnalyzer, get_model_complexity_info
from torch import nn

from sn_openmmlab.flop_counts import register_flop_counts
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm

pytestmark = pytest.mark.filterwarnings('ignore')
SHAPE = (2, 3, 32, 32)


def _fvcore():
    return pytest.importorskip('fvcore.nn').FlopCountAnalysis


COUNTERS = {'mmengine': lambda: FlopAnalyzer, 'fvcore': _fvcore}


@pytest.fixture(params=COUNTERS)
def counter(request):
    return COUNTERS[request.param]()


def _resnet(**norm_cfg):
    backbones = pytest.importorskip('mmdet.models.backbones')
    model = backbones.ResNet(18, base_channels=8, norm_cfg=norm_cfg)
    model.eval()  # which returns nothing here
    return model


def _count(counter, model, shape=SHAPE):
    counted = counter(model, torch.randn(shape))
    counted.unsupported_ops_warnings(False)
    return counted


def _by_kind(counter, model):
    return {kind: int(number) for kind, number in _count(counter, model).by_operator().items()}


@pytest.mark.parametrize('affine', [True, False])
@pytest.mark.parametrize('kind', ['SN', 'SyncSN'])
def test_a_resnet_costs_what_it_costs_with_instance_norm(kind, affine, counter):
    # track_running_stats: without it InstanceNorm refuses maps of one position.
    instance = _by_kind(counter, _resnet(type='IN', affine=affine, track_running_stats=True))

    found = _by_kind(counter, _resnet(type=kind, affine=affine))

    instance['switch_norm'] = instance.pop('instance_norm')
    assert found == instance and set(found) == {'conv', 'switch_norm'}


@pytest.mark.parametrize('training', [True, False])
@pytest.mark.parametrize('shape', [(2, 4), (2, 4, 5), (2, 4, 5, 3), (2, 4, 2, 3, 2)], ids=str)
@pytest.mark.parametrize('affine', [True, False])
@pytest.mark.parametrize('kind', [SwitchNorm, SyncSwitchNorm])
def test_five_operations_per_element_and_four_without_gamma(kind, affine, shape, training, counter):
    layer = kind(4, affine=affine).train(training)
    size = torch.Size(shape).numel()

    assert _count(counter, layer, shape).total() == size * (5 if affine else 4)


def test_every_layer_has_its_share(counter):
    model = nn.Sequential(nn.Conv2d(3, 4, 1), SwitchNorm(4), nn.Sequential(SwitchNorm(4)))

    counted = _count(counter, model).by_module()

    assert counted['1'] == counted['2.0'] == 5 * 2 * 4 * 32 * 32


@pytest.mark.parametrize('training', [True, False])
def test_counting_computes_what_the_model_computes(training, counter):
    layer = SwitchNorm(3, scopes=('in', 'gn', 'ln', 'bn'), num_groups=3, momentum=None)
    layer.train(training)
    twin = copy.deepcopy(layer)
    outputs = []
    model = nn.Sequential(layer)
    model.register_forward_hook(lambda module, x, y: outputs.append((x[0], y)))

    _count(counter, model).total()

    torch.testing.assert_close(outputs[0][1], twin(outputs[0][0]))
    torch.testing.assert_close(layer.state_dict(), twin.state_dict())


def test_mmengines_summary_and_its_activations_take_the_model():
    model = _resnet(type='SN')

    summary = get_model_complexity_info(model, (3, 32, 32))

    assert summary['flops'] > 0
    activations = ActivationAnalyzer(model, torch.randn(SHAPE)).total()
    assert activations == ActivationAnalyzer(_resnet(type='BN'), torch.randn(SHAPE)).total()


def test_other_recordings_are_portable_before_and_after(counter):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), SwitchNorm(4)).eval()
    x = torch.randn(1, 3, 8, 8)

    before = _kinds(model, x)
    _count(counter, model).total()

    assert _kinds(model, x) == before
    assert not any('sn_openmmlab' in kind for kind in before)


def _kinds(model, x):
    return [node.kind() for node in torch.jit.trace(model, x).inlined_graph.nodes()]


@pytest.mark.parametrize('tables', [True, False])
def test_the_count_stands_where_fvcore_looks(tables, monkeypatch):
    for name in ('fvcore', 'fvcore.nn', 'fvcore.nn.flop_count'):
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        monkeypatch.setitem(sys.modules, name, module)
    if tables:
        module._DEFAULT_SUPPORTED_OPS = {}
        module.norm_flop_counter = 'affine at {}'.format

    register_flop_counts()  # a version without them is left alone

    expected = {'sn_openmmlab::switch_norm': 'affine at 1'} if tables else None
    assert getattr(module, '_DEFAULT_SUPPORTED_OPS', None) == expected
