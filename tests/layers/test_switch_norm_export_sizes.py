"""A model exported at one size computes the paper's formula at every other size."""

import copy
import io
import itertools
import warnings

import pytest
import torch
from torch import nn
from torch.export import Dim, export

from sn_openmmlab.layers.switch_norm import SwitchNorm

SCOPES = ('in', 'gn', 'ln', 'bn')
RANKS = {
    2: [(2, 4), (3, 4), (1, 4)],
    3: [(2, 4, 8), (1, 4, 1), (3, 4, 5)],
    4: [(2, 4, 8, 8), (1, 4, 1, 1), (3, 4, 5, 1), (3, 4, 8, 8)],
    5: [(2, 4, 2, 3, 4), (1, 4, 1, 1, 1), (3, 4, 3, 1, 2)],
}
CASES = [(made, shapes) for shapes in RANKS.values() for made in shapes]
# The others take seconds each, and torch.export takes a size of 1 for a constant.
LARGE = [(shapes[0], shapes) for shapes in RANKS.values()]
MAP, PIXEL = ((made, RANKS[4]) for made in RANKS[4][:2])


@pytest.fixture(params=[0, 1], ids=['paper', 'authors'])
def layers(request, randomized):
    """Return a layer of all scopes in evaluation, with running statistics or without."""
    options = {'scopes': SCOPES, 'num_groups': 2, 'correction': request.param}
    given = randomized(SwitchNorm(4, **options))
    batch = randomized(SwitchNorm(4, track_running_stats=False, **options))
    return nn.Sequential(given, batch).eval()


def _dynamic(x, name):
    """Return every dimension of `x` but the channels, as each exporter wants it."""
    return {d: name(d) for d in range(x.dim()) if d != 1}


def _trace(layer, x):
    return torch.jit.trace(layer, x)


def _export(layer, x):
    shapes = (_dynamic(x, lambda d: Dim.DYNAMIC),)
    return export(layer, (x,), dynamic_shapes=shapes).module()


def _compile(layer, x):
    torch._dynamo.reset()
    compiled = torch.compile(layer, backend='aot_eager', dynamic=True)
    compiled(x)
    return compiled


def _onnx(layer, x, **options):
    onnxruntime = pytest.importorskip('onnxruntime')
    pytest.importorskip('onnxscript')
    file = io.BytesIO()
    names = {'input_names': ['x'], 'output_names': ['y']}
    torch.onnx.export(layer, (x,), file, verbose=False, **names, **options)
    session = onnxruntime.InferenceSession(file.getvalue(), providers=['CPUExecutionProvider'])
    return lambda x: torch.from_numpy(session.run(None, {'x': x.numpy()})[0])


def _traced_onnx(layer, x):
    axes = {'x': _dynamic(x, 'd{}'.format)}
    return _onnx(layer, x, dynamo=False, opset_version=11, dynamic_axes=axes)


def _exported_onnx(layer, x):
    shapes = (_dynamic(x, lambda d: Dim.DYNAMIC),)
    return _onnx(layer, x, dynamo=True, opset_version=18, dynamic_shapes=shapes)


WAYS = [
    *itertools.product([_trace], CASES),
    *itertools.product([_traced_onnx], [*LARGE, PIXEL]),
    *itertools.product([_export], LARGE[::2]),
    *itertools.product([_compile], [MAP, PIXEL]),
    (_exported_onnx, MAP),
]


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(('way', 'case'), WAYS, ids=lambda value: getattr(value, '__name__', None))
def test_the_values_are_those_of_the_paper(way, case, layers, paper):
    made, shapes = case
    exported = way(copy.deepcopy(layers), torch.randn(made))
    first, second = layers.double()

    for shape in shapes:
        x = torch.randn(shape)
        expected = paper(second, paper(first, x.double())).float()
        torch.testing.assert_close(exported(x), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('momentum', [0.3, None])
@pytest.mark.parametrize('made', [(2, 4, 1, 1), (3, 4, 6, 5)], ids=str)
def test_a_recorded_training_step_counts_and_averages_anew(made, momentum, randomized):
    options = {'scopes': SCOPES, 'num_groups': 2, 'correction': 1, 'momentum': momentum}
    layer = randomized(SwitchNorm(4, **options))
    trace = torch.jit.trace(copy.deepcopy(layer), torch.randn(made), check_trace=False)
    trace.load_state_dict(layer.state_dict())  # tracing was a step

    for shape in [(3, 4, 5, 5), (0, 4, 3, 3), (1, 4, 1, 1), (2, 4, 0, 3)]:
        x = torch.randn(shape)
        torch.testing.assert_close(trace(x), layer(x))
        torch.testing.assert_close(dict(trace.state_dict()), dict(layer.state_dict()))


def test_a_training_step_exports_for_any_batch(randomized):
    layer = randomized(SwitchNorm(4, correction=1))
    x = torch.randn(2, 4, 5, 5)
    shapes = (_dynamic(x, lambda d: Dim.DYNAMIC),)
    module = export(copy.deepcopy(layer), (x,), dynamic_shapes=shapes).module()

    for shape in [(3, 4, 6, 2), (5, 4, 3, 3)]:
        x = torch.randn(shape)
        torch.testing.assert_close(module(x), layer(x))
        torch.testing.assert_close(dict(module.named_buffers()), dict(layer.named_buffers()))


def test_an_example_without_samples_and_a_batch_without_them(randomized):
    layer = randomized(SwitchNorm(4, scopes=SCOPES, num_groups=2)).eval()
    empty, full = torch.randn(0, 4, 3, 3), torch.randn(2, 4, 5, 3)

    for made in (empty, full):
        trace = torch.jit.trace(layer, made)
        for x in (empty, full):
            torch.testing.assert_close(trace(x), layer(x))


def test_recording_gives_no_warning_about_the_layer():
    # As with torch's BatchNorm, the recording is valid for other inputs.
    layer = SwitchNorm(4, scopes=SCOPES, num_groups=2, correction=1)

    with warnings.catch_warnings():
        warnings.simplefilter('error', torch.jit.TracerWarning)
        for mode in (True, False):
            torch.jit.trace(layer.train(mode), torch.randn(2, 4, 3, 3), check_trace=False)


def test_a_wrong_number_of_channels_is_refused_while_recording():
    with pytest.raises(ValueError, match='made for 4 channels, but dimension 1 of the input has 5'):
        torch.jit.trace(SwitchNorm(4).eval(), torch.randn(2, 5, 3, 3))


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('way', [_trace, _traced_onnx])
@pytest.mark.parametrize('correction', [0, 1])
def test_a_resnet_at_twice_the_size(correction, way, randomized):
    backbones = pytest.importorskip('mmdet.models.backbones')
    norm_cfg = {'type': 'SN', 'correction': correction}
    # At 32 pixels its last maps have one position.
    resnet = backbones.ResNet(18, base_channels=8, out_indices=(3,), norm_cfg=norm_cfg)
    for layer in resnet.modules():
        if isinstance(layer, SwitchNorm):
            randomized(layer)
    model = nn.Sequential(resnet, _First())
    model.eval()

    exported = way(model, torch.randn(1, 3, 32, 32))

    for shape in [(2, 3, 64, 64), (3, 3, 32, 96), (2, 3, 32, 32)]:
        x = torch.randn(shape)
        torch.testing.assert_close(exported(x), model(x).detach(), rtol=1e-3, atol=1e-4)


class _First(nn.Module):
    def forward(self, outputs):
        return outputs[0]


def test_untrained_layers_export_from_traces_without_constant_folding():
    # onnxruntime refuses the file where γ of two layers are equal and constants were folded.
    layers = nn.Sequential(SwitchNorm(4), SwitchNorm(4)).eval()
    x = torch.randn(2, 4, 5, 3)
    run = _onnx(layers, x, dynamo=False, opset_version=11, do_constant_folding=False)
    torch.testing.assert_close(run(x), layers(x).detach())
