"""One call converts the SN layers of a model to SyncSN, and one reverts them."""

import warnings

import pytest
import torch
import torch.distributed as dist
from torch import nn

from sn_openmmlab import (
    SwitchNorm,
    SyncSwitchNorm,
    convert_sync_switch_norm,
    revert_sync_switch_norm,
)


class OurNorm(SwitchNorm):
    """A subclass of a user."""


class OurSyncNorm(SyncSwitchNorm):
    """A subclass of a user."""


@pytest.fixture
def group():
    """Set up a process group of one rank, and return it."""
    dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


@pytest.fixture
def model(randomized):
    """Return SN at two depths, one at two places, beside a BatchNorm and subclasses."""
    shared = randomized(
        SwitchNorm(4, scopes=('gn', 'bn'), num_groups=2, correction=1, momentum=0.3)
    )
    return nn.ModuleDict(
        {
            'first': shared,
            'block': nn.Sequential(nn.Conv2d(4, 4, 1), randomized(SwitchNorm(4)), shared),
            'bn': nn.BatchNorm2d(4),
            'ours': OurNorm(4),
            'our_sync': OurSyncNorm(4),
        }
    )


def _kinds(model):
    return [type(model['first']), *map(type, model['block']), *map(type, list(model.values())[2:])]


def _objects(model):
    tensors = [*model.named_parameters(), *model.named_buffers(), *model.named_modules()]
    return {(name, id(thing)) for name, thing in tensors}


def test_every_sn_is_converted_and_reverted_and_nothing_else(model):
    others = [nn.BatchNorm2d, OurNorm, OurSyncNorm]

    assert convert_sync_switch_norm(model) is model
    assert _kinds(model) == [SyncSwitchNorm, nn.Conv2d, SyncSwitchNorm, SyncSwitchNorm, *others]
    assert model['first'] is model['block'][2]
    assert model['first'].process_group is None

    assert revert_sync_switch_norm(model) is model
    assert _kinds(model) == [SwitchNorm, nn.Conv2d, SwitchNorm, SwitchNorm, *others]
    assert model['first'].__dict__.keys() == SwitchNorm(4).__dict__.keys()


@pytest.mark.parametrize('there_and_back', [False, True])
def test_parameters_buffers_modes_hooks_and_outputs_stay(there_and_back, model):
    model['first'].eval()
    model['block'][1].weight.requires_grad_(False)
    calls = []
    model['first'].register_forward_hook(lambda *_: calls.append('called'))
    x = torch.randn(2, 4, 3, 3)
    expected = model['first'](x)
    before, shown = _objects(model), model['first'].extra_repr()

    convert_sync_switch_norm(model)
    if there_and_back:
        revert_sync_switch_norm(model)

    assert _objects(model) == before
    assert (model['first'].training, model['block'][1].training) == (False, True)
    assert not model['block'][1].weight.requires_grad
    assert torch.equal(model['first'](x), expected)
    assert model['first'].extra_repr() == shown
    assert calls == ['called'] * 2


def test_an_optimizer_built_before_steps_the_converted_layer():
    layer = SwitchNorm(4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)

    convert_sync_switch_norm(layer)
    assert type(layer) is SyncSwitchNorm
    layer(torch.randn(2, 4, 3, 3)).square().sum().backward()
    optimizer.step()

    assert all(not torch.equal(p, torch.ones(4)) for p in (layer.weight, layer.bias))


def test_converting_again_sets_the_process_group(group, model):
    convert_sync_switch_norm(model, group)
    assert model['first'].process_group is model['block'][1].process_group is group

    convert_sync_switch_norm(model)
    assert model['first'].process_group is None


def test_an_invalid_process_group_converts_nothing(model):
    with pytest.raises(TypeError, match='process_group must be None'):
        convert_sync_switch_norm(model, [0, 1])
    assert type(model['first']) is SwitchNorm


def _warnings(function, module):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        function(module)
    # The warning points to the line that called it.
    assert all(warning.filename == __file__ for warning in caught)
    return [str(warning.message) for warning in caught]


def test_subclasses_that_were_left_are_counted(model):
    words = 'which would lose what they override: change such layers by hand.'
    model['second'] = OurNorm(4)
    assert _warnings(convert_sync_switch_norm, model) == [
        f'convert_sync_switch_norm left 2 {__name__}.OurNorm, 1 {__name__}.OurSyncNorm, {words}'
    ]
    # A subclass of SN is not SyncSN, so there is nothing to revert.
    assert _warnings(revert_sync_switch_norm, model) == [
        f'revert_sync_switch_norm left 1 {__name__}.OurSyncNorm, {words}'
    ]


def test_a_module_without_sn_gives_a_warning():
    model = nn.Sequential(nn.BatchNorm2d(4))
    assert _warnings(convert_sync_switch_norm, model) == [
        'convert_sync_switch_norm found no SN in Sequential: nothing changed.'
    ]


def test_converting_or_reverting_twice_gives_no_warning():
    model = nn.Sequential(SwitchNorm(4))
    assert _warnings(revert_sync_switch_norm, model) == []
    assert _warnings(convert_sync_switch_norm, model) == []
    assert _warnings(convert_sync_switch_norm, model) == []
