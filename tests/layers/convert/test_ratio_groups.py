"""Groups of channels get ratios of their own, and the outputs stay the same."""

import pytest
import torch
from torch import nn

from sn_openmmlab import SwitchNorm, SyncSwitchNorm, split_ratio_weights, split_ratios
from sn_openmmlab.layers.sparse import sparsify
from tests.reference import switch_norm_layer


def network(groups: int = 1, seed: int = 0) -> nn.Sequential:
    """Return a network whose parameters and statistics are random numbers, in float64."""
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3),
        SwitchNorm(8, num_ratio_groups=groups),
        nn.Conv2d(8, 12, 1),
        SyncSwitchNorm(12, scopes=('gn', 'bn'), num_groups=3, num_ratio_groups=groups),
    ).double()
    with torch.no_grad():
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            if tensor.is_floating_point():
                tensor.normal_()
            if name.endswith('running_var'):
                tensor.abs_().add_(0.5)
    return model


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(2, 3, 6, 5, dtype=torch.float64)


@pytest.mark.parametrize('sparse', [False, True])
@pytest.mark.parametrize(('trained', 'groups'), [(1, 2), (1, 4), (2, 4), (2, 2), (1, 1)])
def test_outputs_stay_the_same(trained: int, groups: int, sparse: bool, x: torch.Tensor) -> None:
    model = network(trained).eval()
    model = sparsify(model) if sparse else model
    layers = list(model)
    expected = model(x)
    assert split_ratios(model, groups) is model
    assert list(model) == layers
    torch.testing.assert_close(model(x), expected, rtol=0, atol=1e-12)
    for layer in (model[1], model[3]):
        assert layer.num_ratio_groups == groups
        shape = (len(layer.scopes),) if groups == 1 else (groups, len(layer.scopes))
        assert layer.mean_weight.shape == layer.var_weight.shape == shape
        assert not sparse or layer.mean_choice.shape == (groups,)
    # As if it were built so.
    network(groups, seed=1).load_state_dict(model.state_dict())


def test_each_group_keeps_the_ratios_of_its_channels(x: torch.Tensor) -> None:
    layer = SwitchNorm(8, num_ratio_groups=2)
    with torch.no_grad():
        layer.mean_weight.copy_(torch.tensor([[1.0, 2, 3], [4, 5, 6]]))
    split_ratios(layer, 4)
    assert layer.mean_weight.tolist() == [[1, 2, 3], [1, 2, 3], [4, 5, 6], [4, 5, 6]]


def test_the_groups_learn_apart_from_each_other(x: torch.Tensor) -> None:
    layer = split_ratios(network()[1], 2)
    maps = torch.randn(2, 8, 4, 4, dtype=torch.float64)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    (switch_norm_layer(layer, maps) ** 3).sum().backward()
    expected = layer.mean_weight.detach() - 0.1 * layer.mean_weight.grad
    optimizer.zero_grad()
    (layer(maps) ** 3).sum().backward()
    optimizer.step()
    torch.testing.assert_close(layer.mean_weight.detach(), expected)
    assert not layer.mean_weight[0].allclose(layer.mean_weight[1])


def test_frozen_parameters_stay_frozen() -> None:
    layer = SwitchNorm(8).requires_grad_(False)
    split_ratios(layer, 2)
    assert not any(parameter.requires_grad for parameter in layer.parameters())


@pytest.mark.parametrize('sparse', [False, True])
def test_weights_of_one_group_start_a_network_with_more(sparse: bool, x: torch.Tensor) -> None:
    trained, model = network().eval(), network(4, seed=1).eval()
    trained = sparsify(trained) if sparse else trained
    weights = split_ratio_weights(trained.state_dict(), model)
    assert weights._metadata['1']['scopes'] == ['in', 'ln', 'bn']
    model.load_state_dict(weights)
    assert model[1].is_sparse is sparse
    torch.testing.assert_close(model(x), trained(x), rtol=0, atol=1e-12)


def test_channels_that_do_not_split_are_refused_and_nothing_changes() -> None:
    model = network()
    with pytest.raises(ValueError, match=r'^3: 12 channels do not split into 8 equal groups'):
        split_ratios(model, 8)
    assert model[1].num_ratio_groups == 1


def test_fewer_groups_and_other_groups_are_refused() -> None:
    words = 'the SN layer 1 was trained with num_ratio_groups=4, which cannot become 2: set'
    with pytest.raises(ValueError, match=words):
        split_ratios(network(4), 2)
    with pytest.raises(ValueError, match=words):
        split_ratio_weights(network(4).state_dict(), network(2))


def test_a_network_without_sn_is_refused() -> None:
    with pytest.raises(ValueError, match='Conv2d has no SN layer whose ratios'):
        split_ratios(nn.Conv2d(3, 4, 1), 2)


def test_a_number_of_groups_that_is_none_is_refused() -> None:
    with pytest.raises(TypeError, match='num_ratio_groups'):
        split_ratios(network(), '2')
