"""The plain baseline computes SN, and the timed functions compute values and gradients."""

import torch

from sn_openmmlab.kernels.aten import stages
from sn_openmmlab.layers.switch_norm import SwitchNorm
from studies.benchmarks.baselines import (
    ChainSwitchNorm,
    compared_layers,
    evaluation,
    forward,
    forward_backward,
)


def test_plain_baseline_equals_the_layer_with_correction_1():
    torch.manual_seed(0)
    chain = ChainSwitchNorm(6, correction=1, dtype=torch.float64)
    layer = SwitchNorm(6, correction=1, dtype=torch.float64)
    for parameter in chain.parameters():
        torch.nn.init.normal_(parameter)
    layer.load_state_dict(chain.state_dict())
    x, dy = torch.randn(2, 3, 6, 4, 5, dtype=torch.float64)

    results = [forward_backward(module, x, dy)() for module in (chain, layer)]

    torch.testing.assert_close(*results)
    torch.testing.assert_close(chain.running_mean, layer.running_mean)
    torch.testing.assert_close(chain.running_var, layer.running_var)


def test_timed_functions_compute_the_values_and_gradients_of_torch():
    torch.manual_seed(0)
    x, dy = torch.randn(2, 2, 32, 4, 4)
    layers = compared_layers(32, x)
    expected = torch.nn.functional.group_norm(x, 32)

    assert set(layers) == {
        'BN',
        'GN',
        'IN',
        'SN plain',
        'SN aten',
        'SN fused',
        'SN compiled',
    }
    y = forward(layers['GN'], x)()
    assert not y.requires_grad
    torch.testing.assert_close(y, expected)
    gradients = forward_backward(layers['BN'], x, dy)()
    assert [g.shape for g in gradients] == [x.shape, (32,), (32,)]
    torch.testing.assert_close(gradients[2], dy.sum((0, 2, 3)))


def test_evaluation_uses_the_running_statistics_and_leaves_the_layer_in_training():
    layer = torch.nn.BatchNorm2d(3)
    layer.running_mean += 2
    x = torch.randn(2, 3, 4, 4)

    y = evaluation(layer, x)()

    torch.testing.assert_close(y, (x - 2) / (1 + layer.eps) ** 0.5)
    assert layer.training and not y.requires_grad


def test_the_aten_layer_runs_on_its_backend(monkeypatch):
    calls = []
    observe = stages.observe
    monkeypatch.setattr(stages, 'observe', lambda *args: calls.append(1) or observe(*args))
    layers = compared_layers(32, torch.zeros(1))
    x = torch.randn(2, 32, 4, 4)

    torch.testing.assert_close(layers['SN aten'](x), layers['SN fused'](x))
    assert calls == [1]


def test_half_precision_keeps_float32_parameters_where_torch_can_mix_types():
    layers = compared_layers(32, torch.zeros(1, 32, 2, 2, dtype=torch.bfloat16))

    types = {name: next(layer.parameters()).dtype for name, layer in layers.items()}

    halves = {name for name, dtype in types.items() if dtype == torch.bfloat16}
    assert halves == {'GN', 'IN'}
