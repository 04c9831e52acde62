"""torch.export, TorchScript traces and ONNX files of a model compute what the model computes."""

import copy
import io

import pytest
import torch
from torch import nn
from torch.export import Dim, export

from sn_openmmlab.layers.switch_norm import SwitchNorm

LEGACY_OPSET = 11  # of the deployment tools of today's toolboxes
OPSET = 18
SIZES = [(2, 12, 14), (1, 9, 17), (5, 20, 11)]  # images, height, width
LAYERS = {
    'running': {},
    'groups': {'scopes': ('gn', 'bn'), 'num_groups': 2},
    'corrected': {'correction': 1, 'affine': False},
    'batch': {'track_running_stats': False},
    'samples': {'scopes': ('in', 'ln')},
}


@pytest.fixture(params=LAYERS)
def model(request, randomized):
    """Return a small model in evaluation mode: convolutions, SN and a classifier."""
    layers = [randomized(SwitchNorm(4, **LAYERS[request.param])) for _ in range(2)]
    return nn.Sequential(
        nn.Conv2d(3, 4, 3),
        layers[0],
        nn.ReLU(inplace=True),
        nn.Conv2d(4, 4, 3, stride=2),
        layers[1],
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 3),
    ).eval()


def _images(size=(3, 12, 14)):
    return torch.randn(size[0], 3, *size[1:])


def _dynamic():
    return ({0: Dim('batch'), 2: Dim('height', min=8), 3: Dim('width', min=8)},)


def _onnx(model, opset, dynamo):
    file = io.BytesIO()
    names = {'input_names': ['images'], 'output_names': ['scores']}
    if dynamo:
        names['dynamic_shapes'] = _dynamic()
    else:
        names['dynamic_axes'] = {'images': {0: 'batch', 2: 'height', 3: 'width'}}
    torch.onnx.export(
        copy.deepcopy(model), (_images(),), file, opset_version=opset, dynamo=dynamo, **names
    )
    return file.getvalue()


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(
    ('opset', 'dynamo'), [(LEGACY_OPSET, False), (OPSET, True)], ids=['traced', 'exported']
)
def test_onnx_runtime_gives_the_same_for_any_size(opset, dynamo, model):
    onnx, onnxruntime = (pytest.importorskip(name) for name in ('onnx', 'onnxruntime'))
    content = _onnx(model, opset, dynamo)
    session = onnxruntime.InferenceSession(content, providers=['CPUExecutionProvider'])

    assert [o.version for o in onnx.load_from_string(content).opset_import if not o.domain] == [
        opset
    ]
    for size in SIZES:
        images = _images(size)
        found = session.run(None, {'images': images.numpy()})[0]
        # Both compute in float32, with different orders of summation.
        torch.testing.assert_close(
            torch.from_numpy(found), model(images).detach(), rtol=1e-4, atol=1e-5
        )


def test_an_exported_program_gives_the_same_for_any_size(model):
    program = export(model, (_images(),), dynamic_shapes=_dynamic())

    for size in SIZES:
        images = _images(size)
        torch.testing.assert_close(program.module()(images), model(images))


def test_an_exported_program_survives_a_file(model, tmp_path):
    file = tmp_path / 'model.pt2'
    torch.export.save(export(model, (_images(),)), file)

    images = _images()
    torch.testing.assert_close(torch.export.load(file).module()(images), model(images))


@pytest.mark.filterwarnings('ignore')
def test_a_torchscript_trace_gives_the_same_for_any_size(model):
    trace = torch.jit.trace(model, _images())

    for size in SIZES:
        images = _images(size)
        torch.testing.assert_close(trace(images), model(images))


def test_training_exports_with_its_running_statistics(randomized):
    layer = randomized(SwitchNorm(4))
    x = torch.randn(2, 4, 5, 5)
    module = export(layer, (x,)).module()

    y = module(x)

    torch.testing.assert_close(y, layer(x))
    torch.testing.assert_close(dict(module.named_buffers()), dict(layer.named_buffers()))
