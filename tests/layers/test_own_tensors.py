"""The layer uses the tensors that its attributes give, wherever a tool keeps them."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from sn_openmmlab.layers.switch_norm import SwitchNorm


class Doubled(nn.Module):
    def forward(self, tensor: Tensor) -> Tensor:
        return 2 * tensor


@pytest.mark.parametrize('name', ['weight', 'bias', 'mean_weight', 'var_weight'])
def test_a_parametrization(name: str, randomized) -> None:
    layer = randomized(SwitchNorm(4))
    twin, x = copy.deepcopy(layer), torch.randn(2, 4, 3, 3)
    parametrize.register_parametrization(layer, name, Doubled())
    with torch.no_grad():
        getattr(twin, name).mul_(2)

    y, expected = layer(x), twin(x)
    torch.testing.assert_close(y, expected)

    y.sin().sum().backward()
    expected.sin().sum().backward()
    original = layer.parametrizations[name].original
    torch.testing.assert_close(original.grad, 2 * getattr(twin, name).grad)


def test_a_copy_of_data_parallel(randomized) -> None:
    """Its parameters are plain tensors, outside the table of parameters."""
    layer, x = randomized(SwitchNorm(4)), torch.randn(2, 4, 3, 3)
    replica = layer._replicate_for_data_parallel()
    for name, parameter in layer.named_parameters():
        setattr(replica, name, parameter.detach() + 1)
    twin = copy.deepcopy(layer)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.add_(1)
    torch.testing.assert_close(replica(x), twin(x))


def test_tensors_that_replace_the_parameters(randomized) -> None:
    layer, other = (randomized(SwitchNorm(4)) for _ in range(2))
    x = torch.randn(2, 4, 3, 3)
    y = torch.func.functional_call(layer, dict(other.state_dict()), x)
    torch.testing.assert_close(y, other(x))
