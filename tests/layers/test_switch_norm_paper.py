"""The layer against Eq. 2 to 5 of the paper, over shapes, scopes, groups and corrections."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sn_openmmlab.layers.switch_norm import SwitchNorm

SCOPES = ('in', 'gn', 'ln', 'bn')


@st.composite
def layers(draw):
    groups, size = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    scopes = draw(st.permutations(SCOPES))[: draw(st.integers(1, 4))]
    layer = SwitchNorm(
        groups * size,
        eps=draw(st.sampled_from([1e-5, 1e-3, 1.0])),
        affine=draw(st.booleans()),
        track_running_stats=draw(st.booleans()),
        scopes=scopes,
        num_groups=groups,
        correction=draw(st.sampled_from([0, 1])),
        dtype=torch.float64,
    )
    return layer.train(draw(st.booleans()))


@st.composite
def shapes(draw, channels):
    positions = draw(st.lists(st.integers(0, 4), max_size=3))
    return (draw(st.integers(0, 3)), channels, *positions)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.data())
def test_output_and_gradients_are_those_of_the_formulas(paper, randomized, outcome, data):
    torch.manual_seed(data.draw(st.integers(0, 2**16)))
    layer = randomized(data.draw(layers()))
    x = torch.randn(data.draw(shapes(layer.num_features)), dtype=torch.float64)
    x = x * data.draw(st.sampled_from([1e-3, 1.0, 1e3])) + data.draw(st.sampled_from([0.0, 5.0]))
    grad = torch.randn_like(x)

    found = outcome(layer, x, grad)

    if x.numel():
        expected = outcome(layer, x, grad, paper)
    else:
        named = {'y': x, 'x': x, **dict(layer.named_parameters())}
        expected = {name: torch.zeros_like(value.detach()) for name, value in named.items()}
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
