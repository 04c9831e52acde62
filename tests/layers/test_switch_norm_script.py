"""torch.jit.script takes the layer as it takes torch's own norms."""

import copy
import io
import itertools
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from sn_openmmlab.layers import sync_switch_norm
from sn_openmmlab.layers.convert.from_batch_norm import convert_batch_norm
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm

pytestmark = pytest.mark.filterwarnings('ignore::DeprecationWarning')
SHAPES = [(3, 4), (2, 4, 7), (2, 4, 3, 5), (1, 4, 1, 1), (2, 4, 2, 3, 2), (0, 4, 3, 3), (2, 4, 0)]
OPTIONS = [
    {},
    {'scopes': ('in', 'gn', 'ln', 'bn'), 'num_groups': 2, 'correction': 1},
    {'scopes': ('bn',), 'momentum': None, 'affine': False},
    {'track_running_stats': False, 'correction': 1},
    {'scopes': ('ln', 'in')},
    {'momentum': 0.0, 'dtype': torch.float64},
    {'norm_eval': True},
]


def _through_a_file(scripted):
    file = io.BytesIO()
    torch.jit.save(scripted, file)
    file.seek(0)
    return torch.jit.load(file)


@pytest.mark.parametrize('saved', [False, True])
@pytest.mark.parametrize('options', OPTIONS, ids=str)
@pytest.mark.parametrize('kind', [SwitchNorm, SyncSwitchNorm])
def test_values_and_running_statistics_are_those_of_the_layer(kind, options, saved, randomized):
    layer = randomized(kind(4, **options))
    scripted = torch.jit.script(copy.deepcopy(layer))
    scripted = _through_a_file(scripted) if saved else scripted
    dtype = layer.mean_weight.dtype

    for training, shape in itertools.product([True, False], SHAPES):
        x = torch.randn(shape, dtype=dtype)
        y = scripted.train(training)(x)
        torch.testing.assert_close(y, layer.train(training)(x))
        torch.testing.assert_close(dict(scripted.state_dict()), dict(layer.state_dict()))


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
def test_half_precision_inputs_keep_their_type(dtype, randomized):
    layer = randomized(SwitchNorm(4)).eval()
    x = torch.randn(2, 4, 5, 5).to(dtype)

    y = torch.jit.script(layer)(x)

    assert y.dtype == dtype
    torch.testing.assert_close(y, layer(x))


def test_gradients(randomized, outcome):
    layer = randomized(SwitchNorm(4, dtype=torch.float64))
    x, grad = torch.randn(2, 3, 4, 5, 2, dtype=torch.float64)
    expected = outcome(layer, x, grad)
    scripted = torch.jit.script(layer)

    for _ in range(3):  # its first calls are profiled, later ones optimized
        torch.testing.assert_close(outcome(scripted, x, grad), expected)


def test_the_layer_stays_and_shares_its_tensors(randomized):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), randomized(SwitchNorm(4)))
    layer = model[1]

    scripted = torch.jit.script(model)

    assert model[1] is layer and type(layer) is SwitchNorm
    model.train()(torch.randn(2, 3, 6, 6))
    torch.testing.assert_close(dict(scripted.state_dict()), dict(model.state_dict()))
    assert scripted.state_dict().keys() == model.state_dict().keys()


@pytest.mark.parametrize('shape', [(2, 5, 3, 3), (4,), (1, 4, 1, 1, 1, 1)], ids=str)
def test_wrong_inputs_are_refused(shape):
    with pytest.raises(torch.jit.Error, match='inputs of 2 to 5 dimensions and 4 channels'):
        torch.jit.script(SwitchNorm(4))(torch.randn(shape))


class _Block(nn.Module):
    def __init__(self, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 2 * channels, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(2 * channels)
        self.conv2 = nn.Conv2d(2 * channels, 2 * channels, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(2 * channels)
        self.short = nn.Conv2d(channels, 2 * channels, 1, stride)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.relu(self.norm1(self.conv1(x)))
        return self.relu(self.norm2(self.conv2(y)) + self.short(x))


def test_a_residual_network_trains_and_evaluates(randomized):
    model = convert_batch_norm(nn.Sequential(_Block(3, 1), _Block(6, 2)), batch_ratio=0.5)
    scripted = torch.jit.script(copy.deepcopy(model))

    for shape in [(2, 3, 16, 16), (3, 3, 9, 12)]:
        x = torch.randn(shape)
        torch.testing.assert_close(scripted(x), model(x), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(dict(scripted.state_dict()), dict(model.state_dict()))
    torch.testing.assert_close(scripted.eval()(x), model.eval()(x), rtol=1e-4, atol=1e-5)

    frozen = torch.jit.freeze(scripted)
    torch.testing.assert_close(frozen(x), model(x), rtol=1e-4, atol=1e-5)


def test_a_layer_that_pools_over_processes_is_refused(monkeypatch):
    group = SimpleNamespace(WORLD='all')
    several = {
        'is_available': lambda: True,
        'is_initialized': lambda: True,
        'get_world_size': lambda group: 2,
        'group': group,
    }
    monkeypatch.setattr(sync_switch_norm, 'dist', SimpleNamespace(**several))
    model = nn.Sequential(SyncSwitchNorm(4))

    with pytest.raises(RuntimeError, match=r'call eval\(\).*or revert_sync_switch_norm\(model\)'):
        torch.jit.script(model)

    torch.jit.script(model.eval())
