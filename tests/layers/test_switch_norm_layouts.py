"""The memory layout of the input changes neither the output nor the gradients."""

import copy

import pytest
import torch

from sn_openmmlab.layers.switch_norm import SwitchNorm

LAYOUTS = {
    'channels_last': lambda x: x.contiguous(memory_format=torch.channels_last),
    'transposed': lambda x: x.transpose(2, 3).contiguous().transpose(2, 3),
    'channels_outermost': lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
    'every_second_column': lambda x: torch.stack([x, x + 1], -1).flatten(-2)[..., ::2],
    'part_of_a_map': lambda x: torch.nn.functional.pad(x, (2, 1, 1, 3))[..., 1:-3, 2:-1],
    'expanded': lambda x: x[:1].expand(x.shape),
}


@pytest.mark.parametrize('training', [True, False], ids=['train', 'eval'])
@pytest.mark.parametrize('name', LAYOUTS)
def test_any_layout_gives_what_a_contiguous_input_gives(name, training, randomized, outcome):
    layer = randomized(SwitchNorm(4, dtype=torch.float64)).train(training)
    x, grad = torch.randn(2, 3, 4, 5, 6, dtype=torch.float64)
    laid = LAYOUTS[name](x)
    assert not laid.is_contiguous()

    found = outcome(layer, laid, grad)

    torch.testing.assert_close(found, outcome(layer, laid.contiguous(), grad))


@pytest.mark.parametrize('name', LAYOUTS)
def test_without_gradients_the_input_itself_is_read(name, randomized):
    layer = randomized(SwitchNorm(4, dtype=torch.float64))
    laid = LAYOUTS[name](torch.randn(3, 4, 5, 6, dtype=torch.float64))
    twin = copy.deepcopy(layer)

    with torch.no_grad():
        found, expected = layer(laid), twin(laid.contiguous())

    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(layer.state_dict(), twin.state_dict())


@pytest.mark.parametrize(
    ('shape', 'memory_format'),
    [((2, 4, 5, 6), torch.channels_last), ((2, 4, 3, 5, 6), torch.channels_last_3d)],
)
def test_the_output_keeps_channels_last(shape, memory_format, randomized):
    layer = randomized(SwitchNorm(4))
    x = torch.randn(shape)

    y = layer(x.contiguous(memory_format=memory_format))

    assert y.is_contiguous(memory_format=memory_format)
    torch.testing.assert_close(y, layer(x))
