"""Group SN: groups of channels with ratios of their own, against the plain formula per group."""

import pytest
import torch
from torch.autograd import gradcheck

from sn_openmmlab import SwitchNorm
from sn_openmmlab.errors import WeightsError
from sn_openmmlab.ops.backends import use_backend
from sn_openmmlab.ops.switch_norm import switch_norm
from tests import reference
from tests.backends import ON_CPU
from tests.reference import switch_norm_layer

SCOPES = ('in', 'gn', 'ln', 'bn')
SHAPES = [(3, 6), (2, 6, 3), (2, 6, 3, 2), (2, 6, 2, 1, 2)]


@pytest.mark.parametrize('training', [True, False])
@pytest.mark.parametrize('groups', [2, 3, 6])
@pytest.mark.parametrize('shape', SHAPES, ids=str)
@pytest.mark.parametrize('backend', ON_CPU)
def test_output_and_gradients_are_those_of_the_formula(
    backend, shape, groups, training, randomized, outcome
):
    layer = SwitchNorm(6, scopes=SCOPES, num_groups=2, num_ratio_groups=groups)
    layer = randomized(layer).double().train(training)
    x, grad = torch.randn(2, *shape).double()
    expected = outcome(layer, x, grad, forward=switch_norm_layer)

    with use_backend(backend):
        found = outcome(layer, x, grad)

    torch.testing.assert_close(found, expected)
    assert found['mean_weight'].shape == (groups, 4)


def test_gradcheck():
    shapes = [(2, 4, 3), (4,), (4,), (2, 4), (2, 4)]
    inputs = [torch.randn(shape).double().requires_grad_() for shape in shapes]
    options = {'scopes': SCOPES, 'num_groups': 2, 'correction': 1, 'eps': 0.1}

    with use_backend('aten'):
        assert gradcheck(lambda *inputs: switch_norm(*inputs, **options)[0], inputs)


def test_equal_groups_are_one_mix(randomized):
    layer = randomized(SwitchNorm(6)).double()
    grouped = SwitchNorm(6, num_ratio_groups=3).double()
    state = {
        name: value.repeat(3, 1) if name in ('mean_weight', 'var_weight') else value
        for name, value in layer.state_dict().items()
    }
    grouped.load_state_dict(state)
    x = torch.randn(2, 6, 4, 4).double()

    torch.testing.assert_close(grouped(x), layer(x))
    for ratios, single in zip(grouped.importance_ratios(), layer.importance_ratios(), strict=True):
        torch.testing.assert_close(ratios, single.expand(3, 3))


def test_one_group_is_the_layer_without_the_option():
    layer = SwitchNorm(6, num_ratio_groups=1)

    layer.load_state_dict(SwitchNorm(6).state_dict())

    assert layer.mean_weight.shape == (3,) and 'num_ratio_groups' not in repr(layer)


@pytest.mark.parametrize(('trained', 'built'), [(1, 2), (2, 1), (2, 3)])
def test_weights_of_another_number_of_groups_are_refused(trained, built):
    state = SwitchNorm(6, num_ratio_groups=trained).state_dict()

    with pytest.raises(WeightsError, match=f'set num_ratio_groups={trained} in its norm_cfg'):
        SwitchNorm(6, num_ratio_groups=built).load_state_dict(state)


def test_wrong_numbers_of_groups_are_refused():
    with pytest.raises(ValueError, match='6 channels do not split into 4 equal groups'):
        SwitchNorm(6, num_ratio_groups=4)
    with pytest.raises(ValueError, match='must be at least 1'):
        SwitchNorm(6, num_ratio_groups=0)
    with pytest.raises(TypeError, match='must be a whole number'):
        SwitchNorm(6, num_ratio_groups='2')
    controls = torch.ones(2, 4, 3)
    with pytest.raises(ValueError, match='do not split into 4 equal groups'):
        switch_norm(
            torch.randn(2, 6),
            None,
            None,
            *controls,
            scopes=('in', 'ln', 'bn'),
            num_groups=1,
            correction=0,
            eps=1e-5,
        )


@pytest.mark.parametrize('training', [True, False])
def test_scripted_compiled_and_differentiated_twice(training, randomized):
    layer = randomized(SwitchNorm(6, num_ratio_groups=2)).double().train(training)
    x = torch.randn(2, 6, 3, 2).double()
    expected = switch_norm_layer(layer, x)

    for made in (torch.jit.script, lambda m: torch.compile(m, backend='eager', fullgraph=True)):
        torch.testing.assert_close(made(layer)(x), expected)
    assert torch.autograd.gradgradcheck(layer.eval(), x.requires_grad_())


def test_reference_is_the_formula_of_each_group():
    x, (w, v) = torch.randn(2, 4, 3), torch.randn(2, 2, 2)
    options = {'scopes': ('in', 'ln'), 'num_groups': 1, 'correction': 0}

    mean, var, _ = reference.mixed_moments(x, w, v, **options)

    for group, channels in ((0, slice(0, 2)), (1, slice(2, 4))):
        own_mean, own_var, _ = reference.mixed_moments(x, w[group], v[group], **options)
        torch.testing.assert_close(mean[:, channels], own_mean[:, channels])
        torch.testing.assert_close(var[:, channels], own_var[:, channels])
