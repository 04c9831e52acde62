"""BatchNorms with an activation of their own, such as timm's, become SN layers with it."""

import copy
import pickle

import pytest
import torch
import torch.fx
from torch import nn

from sn_openmmlab import (
    SwitchNorm,
    SyncSwitchNorm,
    convert_batch_norm,
    convert_sync_switch_norm,
    revert_sync_switch_norm,
)
from sn_openmmlab.layers.norm_act import SwitchNormAct, SyncSwitchNormAct


class BatchNormAct2d(nn.BatchNorm2d):
    """A stand-in for timm's class, which is recognised by its module and name."""

    __module__ = 'timm.layers.norm_act'

    def __init__(self, channels, drop=None, act=None, **kwargs):
        super().__init__(channels, **kwargs)
        self.drop = nn.Identity() if drop is None else drop
        self.act = nn.ReLU(inplace=True) if act is None else act

    def forward(self, x):
        return self.act(self.drop(super().forward(x)))


class SyncBatchNormAct(nn.SyncBatchNorm):
    """A stand-in for timm's class, whose conversion sets the children."""

    __module__ = 'timm.layers.norm_act'

    def forward(self, x):
        y = super().forward(x)
        for name in ('drop', 'act'):
            y = getattr(self, name)(y) if hasattr(self, name) else y
        return y


def _sync_batch_norm_act(channels, drop=None, act=None, **kwargs):
    layer = SyncBatchNormAct(channels, **kwargs)
    layer.act, layer.drop = nn.ReLU(inplace=True) if act is None else act, drop or nn.Identity()
    return layer


KINDS = [(BatchNormAct2d, SwitchNormAct), (_sync_batch_norm_act, SyncSwitchNormAct)]
ACTS = [nn.ReLU(inplace=True), nn.PReLU(6, init=0.3), nn.SiLU(inplace=True), nn.Identity()]


@pytest.fixture
def x():
    return torch.randn(3, 6, 4, 5).double()


def _filled(layer, randomized):
    return randomized(layer.double())


@pytest.mark.parametrize('act', ACTS, ids=lambda act: type(act).__name__)
@pytest.mark.parametrize(('kind', 'becomes'), KINDS)
def test_evaluation_at_ratio_one_is_the_original(kind, becomes, act, x, randomized):
    layer = _filled(kind(6, act=copy.deepcopy(act), eps=1e-3), randomized).eval()
    drop, act, names = layer.drop, layer.act, set(layer.state_dict())
    expected = layer(x.clone())

    assert convert_batch_norm(layer, 1) is layer
    assert type(layer) is becomes
    assert layer.drop is drop and layer.act is act
    assert set(layer.state_dict()) == {*names, 'mean_weight', 'var_weight'}
    torch.testing.assert_close(layer(x.clone()), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize('act', ACTS, ids=lambda act: type(act).__name__)
@pytest.mark.parametrize(('kind', 'becomes'), KINDS)
def test_training_with_bn_alone_is_the_original(kind, becomes, act, x, randomized):
    layer = _filled(kind(6, act=copy.deepcopy(act)), randomized)
    reference, grad = copy.deepcopy(layer), torch.randn(x.shape).double()
    convert_batch_norm(layer, 1)

    seen = []
    for part in (reference, layer):
        leaf = x.clone().requires_grad_()
        y = part(leaf)
        # λ is left out: the original has none.
        inputs = [leaf, *(part.get_parameter(name) for name, _ in reference.named_parameters())]
        seen.append([y, *torch.autograd.grad(y, inputs, grad)])
    torch.testing.assert_close(seen[1], seen[0])
    torch.testing.assert_close(layer.running_mean, reference.running_mean)


def test_the_mix_is_normalized_before_it_is_dropped_and_activated(x, randomized):
    class Double(nn.Module):
        def forward(self, x):
            return 2 * x

    layer = _filled(BatchNormAct2d(6, drop=Double(), act=nn.Tanh()), randomized)
    convert_batch_norm(layer, 1 / 3)
    plain = SwitchNorm(6).double()
    plain.load_state_dict(layer.state_dict())
    torch.testing.assert_close(layer(x), (2 * plain(x)).tanh())


@pytest.mark.parametrize('module', ['timm.layers.norm_act', 'timm.models.layers.norm_act'])
def test_modules_of_older_and_newer_timm(module):
    older = type('BatchNormAct2d', (BatchNormAct2d,), {'__module__': module})
    older.forward = lambda self, x: self.act(nn.BatchNorm2d.forward(self, x))
    layer = older(6)
    del layer.drop
    reference, x = copy.deepcopy(layer), torch.randn(2, 6, 4, 4)
    assert type(convert_batch_norm(layer, 1)) is SwitchNormAct
    torch.testing.assert_close(layer(x), reference(x))


def test_a_batch_norm_that_only_inherits_forward_is_converted():
    class Narrow(BatchNormAct2d):
        def __init__(self):
            super().__init__(4)

    assert type(convert_batch_norm(Narrow())) is SwitchNormAct


def test_classes_of_the_same_name_elsewhere_are_left():
    elsewhere = type('BatchNormAct2d', (BatchNormAct2d,), {'__module__': 'somewhere'})
    elsewhere.forward = lambda self, x: x
    with pytest.warns(UserWarning, match=r'1 somewhere\.BatchNormAct2d \(a forward of its own\)'):
        layer = convert_batch_norm(elsewhere(4))
    assert type(layer) is elsewhere


def test_syncing_and_reverting_keep_the_activation(x, randomized):
    model = nn.Sequential(BatchNormAct2d(6, act=nn.Tanh()), nn.BatchNorm2d(6)).double()
    randomized(model[0])
    convert_batch_norm(model, 0.5)
    layer, expected = model[0], model(x)

    convert_sync_switch_norm(model)
    assert [type(part) for part in model] == [SyncSwitchNormAct, SyncSwitchNorm]
    assert torch.equal(model(x), expected)
    revert_sync_switch_norm(model)
    assert [type(part) for part in model] == [SwitchNormAct, SwitchNorm]
    assert model[0] is layer
    assert torch.equal(model(x), expected)


def test_it_is_saved_and_copied(x):
    layer = convert_batch_norm(BatchNormAct2d(6, act=nn.Tanh()), 0.5).double().eval()
    for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert type(again) is SwitchNormAct
        assert torch.equal(again(x), layer(x))


@pytest.mark.parametrize('act', ACTS)
@pytest.mark.parametrize('children', [('drop', 'act'), ('act',), ()])
def test_scripted_and_recorded_by_fx_as_eagerly(children, act, x, randomized):
    kind = BatchNormAct2d(6, act=copy.deepcopy(act))
    model = convert_batch_norm(nn.Sequential(nn.Conv2d(6, 6, 1), kind), 0.6)
    randomized(model[1])
    model.double().eval()
    for name in {'drop', 'act'} - set(children):
        delattr(model[1], name)
    expected = model(x)
    torch.testing.assert_close(torch.jit.script(copy.deepcopy(model))(x), expected)
    graph = torch.fx.symbolic_trace(copy.deepcopy(model))
    assert [node.op for node in graph.graph.nodes].count('call_module') == 2
    torch.testing.assert_close(graph(x), expected)
    torch.testing.assert_close(torch.jit.trace(model, x)(x), expected)
