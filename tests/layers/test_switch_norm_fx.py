"""torch.fx records the layer as one call, as it does torch's own norms."""

import copy

import pytest
import torch
from torch import nn
from torch.fx import symbolic_trace

from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm

CALLS = ['0', '1', '2', '3.0', '3.1']


@pytest.fixture
def model(randomized):
    inner = nn.Sequential(
        nn.Conv2d(4, 4, 3), randomized(SyncSwitchNorm(4, scopes=('bn', 'gn'), num_groups=2))
    )
    return nn.Sequential(nn.Conv2d(3, 4, 3), randomized(SwitchNorm(4)), nn.ReLU(), inner)


def _calls(graph_module):
    return [node.target for node in graph_module.graph.nodes if node.op == 'call_module']


def test_each_layer_is_one_call_and_the_values_are_the_models(model):
    traced = symbolic_trace(model)

    traced.graph.lint()
    assert _calls(traced) == CALLS
    for mode in (True, False):
        copied, twin = copy.deepcopy(traced).train(mode), copy.deepcopy(model).train(mode)
        x = torch.randn(2, 3, 9, 9)
        torch.testing.assert_close(copied(x), twin(x), rtol=0, atol=0)
        torch.testing.assert_close(dict(copied.state_dict()), dict(twin.state_dict()))


def test_a_layer_that_is_the_root_is_refused():
    with pytest.raises(ValueError, match=r'trace a module that has it as a child'):
        symbolic_trace(SwitchNorm(4))


@pytest.mark.filterwarnings('ignore')
def test_quantization_observes_around_it(model):
    quantization = pytest.importorskip('torch.ao.quantization')
    quantize_fx = pytest.importorskip('torch.ao.quantization.quantize_fx')
    x = torch.randn(2, 3, 9, 9)
    mapping = quantization.get_default_qconfig_mapping()
    model.eval()

    prepared = quantize_fx.prepare_fx(copy.deepcopy(model), mapping, (x,))

    torch.testing.assert_close(prepared(x), model(x))
    assert [
        name for name in _calls(prepared) if 'observer' not in name and 'process' not in name
    ] == CALLS
    quantized = quantize_fx.convert_fx(prepared)
    layers = dict(quantized.named_modules())
    assert type(layers['1']) is SwitchNorm and type(layers['3.1']) is SyncSwitchNorm
    assert (quantized(x) - model(x)).abs().max() < 0.1 * model(x).abs().max()
