"""MMDeploy exports the demo's models with SN, where it is installed.

MMDeploy 1.3.1 is from 2023, when `torch.onnx.export` traced a model unless told otherwise, and had
one function more. Both are put back here, so that it runs with the torch of this repository.
"""

import functools
from pathlib import Path

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from torch import Tensor, nn

from sn_openmmlab.layers.sparse import sparsify
from sn_openmmlab.layers.switch_norm import SwitchNorm

pytestmark = pytest.mark.slow

CONFIGS = Path(__file__).parents[2] / 'configs/demo'
# What MMDeploy's own configs of this kind hold, for images of any size.
POST_PROCESSING = {
    'score_threshold': 0.05,
    'confidence_threshold': 0.005,
    'iou_threshold': 0.5,
    'max_output_boxes_per_class': 100,
    'pre_top_k': 5000,
    'keep_top_k': 100,
    'background_label_id': -1,
}
CASES = {
    'faster-rcnn_r18_fpn_sn-all_digits.py': (
        {'task': 'ObjectDetection', 'model_type': 'end2end', 'post_processing': POST_PROCESSING},
        ['dets', 'labels'],
    ),
    'deeplab_r18b-d8_sn_digits.py': ({'task': 'Segmentation', 'with_argmax': False}, ['output']),
    'resnet18_sn_digits.py': ({'task': 'Classification'}, ['output']),
}


@pytest.fixture
def torch_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give torch.onnx what MMDeploy 1.3.1 expects."""
    symbolics = pytest.importorskip('torch.onnx.symbolic_opset9')
    traced = functools.partial(torch.onnx.export, dynamo=False)
    monkeypatch.setattr(torch.onnx, 'export', traced)
    cast = lambda graph, x, _: graph.op('Cast', x, to_i=7)  # noqa: E731  to int64
    monkeypatch.setattr(symbolics, '_cast_Long', cast, raising=False)


def _randomized(model: nn.Module, sparse: bool) -> nn.Module:
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, SwitchNorm):
                for parameter in layer.parameters():
                    parameter.copy_(torch.rand_like(parameter) + 0.5)
                layer.running_mean.normal_()
                layer.running_var.uniform_(0.5, 2)
    return sparsify(model) if sparse else model


def _expected(model: nn.Module, toolbox: str, images: Tensor) -> list[Tensor]:
    """Return what the outputs of `_outputs` should be."""
    if toolbox == 'mmdet':
        return list(model.extract_feat(images)[:4])  # RoIs do not use the coarsest map
    if toolbox == 'mmpretrain':
        return [model(images, mode='tensor').softmax(1)]
    return [model.encode_decode(images, [{'img_shape': tuple(images.shape[2:])}])]


def _outputs(file: Path, toolbox: str) -> list[str]:
    """Return which tensors of a file to compare, after making them outputs of it.

    They are its own outputs, but of a detector the maps that RoIAlign reads: MMDeploy chooses other
    proposals, and so other boxes, than MMDetection.
    """
    onnx = pytest.importorskip('onnx')
    model = onnx.load(file)
    if toolbox != 'mmdet':
        return [output.name for output in model.graph.output]
    maps = [node.input[0] for node in model.graph.node if node.op_type == 'RoiAlign']
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in maps)
    onnx.save(model, file)
    return maps


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('sparse', [False, True], ids=['dense', 'sparse'])
@pytest.mark.parametrize('name', CASES)
def test_its_file_computes_what_the_model_computes(name, sparse, torch_of_its_time, tmp_path):
    pytest.importorskip('mmdeploy')
    onnxruntime = pytest.importorskip('onnxruntime')
    cv2 = pytest.importorskip('cv2')
    from mmdeploy.apis import torch2onnx

    config = Config.fromfile(CONFIGS / name)
    toolbox = config.default_scope
    codebase, outputs = CASES[name]
    torch.manual_seed(0)
    init_default_scope(toolbox)
    model = _randomized(MODELS.build(config.model), sparse).eval()
    checkpoint = tmp_path / 'model.pth'
    torch.save({'state_dict': model.state_dict(), 'meta': {}}, checkpoint)
    image = np.random.default_rng(0).integers(0, 255, (192, 256, 3), np.uint8)
    cv2.imwrite(str(tmp_path / 'image.png'), image)
    axes = {'input': {0: 'batch', 2: 'height', 3: 'width'}}
    deploy = Config(
        {
            'onnx_config': {
                'type': 'onnx',
                'export_params': True,
                'keep_initializers_as_inputs': False,
                # Opset 16 is the first with the RoIAlign of the toolboxes.
                'opset_version': 16,
                'save_file': 'end2end.onnx',
                'input_names': ['input'],
                'output_names': outputs,
                'input_shape': None,
                'optimize': True,
                'dynamic_axes': axes,
            },
            'codebase_config': {'type': toolbox, **codebase},
            'backend_config': {'type': 'onnxruntime'},
        }
    )

    torch2onnx(
        str(tmp_path / 'image.png'),
        str(tmp_path),
        'end2end.onnx',
        deploy,
        str(CONFIGS / name),
        str(checkpoint),
        device='cpu',
    )

    file = tmp_path / 'end2end.onnx'
    names = _outputs(file, toolbox)
    session = onnxruntime.InferenceSession(file, providers=['CPUExecutionProvider'])
    for size in [(192, 256), (256, 192), (224, 320)]:
        images = torch.randn(1, 3, *size)
        with torch.no_grad():
            expected = _expected(model, toolbox, images)
        for found, other in zip(
            session.run(names, {'input': images.numpy()}), expected, strict=True
        ):
            # Both compute in float32, with different orders of summation.
            atol = 2e-5 * float(other.abs().max())
            torch.testing.assert_close(torch.from_numpy(found), other, rtol=0, atol=atol)
