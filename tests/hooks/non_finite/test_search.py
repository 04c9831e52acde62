"""The first place of a training step that is not finite."""

from contextlib import nullcontext

import pytest
import torch
from torch import Tensor, nn

from sn_openmmlab.hooks.non_finite.finding import Finding, Stage
from sn_openmmlab.hooks.non_finite.search import search

PATHS = ['a.jpg', 'b.jpg']


class Root(nn.Module):
    """The square root, with a slope of infinity at 0."""

    def forward(self, x: Tensor) -> Tensor:
        return x.abs().sqrt()


class Model(nn.Module):
    """Two layers around a root; the order of the attributes is not that of the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(3, 1)
        self.root = Root()
        self.first = nn.Linear(2, 3)
        self.unused = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return dict(loss_a=self.last(self.root(self.first(x))).mean())


def _search(model: nn.Module, x: Tensor) -> Finding:
    return search(model, ((x,), {}), PATHS, nullcontext)


def test_gradient_is_that_of_the_layer_before_the_root() -> None:
    model = Model()
    nn.init.zeros_(model.first.weight), nn.init.zeros_(model.first.bias)
    x = torch.ones(2, 2)
    model(x)['loss_a'].backward()
    assert model.last.weight.grad.isfinite().all()
    found = _search(model, x)
    assert found.stage == Stage.GRADIENT
    assert 'the gradient of first.weight is the first that is not' in found.what
    assert found.images == PATHS


@pytest.mark.parametrize('name', ['first', 'last'])
def test_layer_is_the_first_that_was_called(name: str) -> None:
    model = Model()
    model.get_submodule(name).weight.data[0, 0] = torch.nan
    found = _search(model, torch.ones(2, 2))
    assert found.stage == Stage.LAYER
    assert found.what.startswith(f'{name} (Linear) is the first layer whose output is not')
    assert found.what.endswith('its own weight is not finite either')
    # No hook stays.
    assert not any(module._forward_hooks for module in model.modules())


def test_row_of_the_input_is_the_image() -> None:
    x = torch.ones(2, 2)
    x[0, 1] = torch.inf
    found = _search(Model(), x)
    assert (found.stage, found.images) == (Stage.INPUT, ['a.jpg'])


def test_nothing_is_claimed_where_the_forward_pass_cannot_be_repeated() -> None:
    model = Model()
    found = search(model, None, PATHS, nullcontext)
    assert (found.stage, found.images) == (Stage.UNKNOWN, PATHS)
    assert found.what.endswith('since the model computes its loss outside of its forward')
    found = _search(model, torch.ones(2, 5))
    assert found.stage == Stage.UNKNOWN
    assert 'since the forward pass cannot be repeated (RuntimeError: ' in found.what
    assert '\n' not in found.what
    assert _search(model, torch.ones(2, 2)).what.endswith(
        'finite when the forward pass is repeated'
    )
