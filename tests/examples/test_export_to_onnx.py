"""The example exports a model as a user does it, and checks its file."""

import re
import runpy

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from torch import nn

from sn_openmmlab.layers.sparse import sparsify
from sn_openmmlab.layers.switch_norm import SwitchNorm

DEMOS = {
    'classifier': 'resnet18_sn_digits.py',
    'detector': 'faster-rcnn_r18_fpn_sn-all_digits.py',
    'segmenter': 'deeplab_r18b-d8_sn_digits.py',
}


def _weights(config, file, sparse):
    """Write untrained weights of a demo's model."""
    config = Config.fromfile(config)
    init_default_scope(config.default_scope)
    model = MODELS.build(config.model)
    for name, parameter in model.named_parameters():
        if name.endswith(('mean_weight', 'var_weight')):
            # A sparse layer then chooses 'bn'.
            parameter.data = torch.linspace(0, 1, len(parameter))
    torch.save({'state_dict': (sparsify(model) if sparse else model).state_dict()}, file)


@pytest.mark.filterwarnings('ignore')
def test_it_exports_for_any_size_and_notices_a_wrong_file(repo, tmp_path):
    onnxruntime, _ = map(pytest.importorskip, ('onnxruntime', 'onnxscript'))
    example = runpy.run_path(str(repo / 'examples/export_to_onnx.py'))
    network = nn.Sequential(nn.Conv2d(3, 4, 3), SwitchNorm(4)).eval()
    out = tmp_path / 'model.onnx'

    example['export'](network, str(out))

    (images,) = onnxruntime.InferenceSession(out).get_inputs()
    assert images.shape[1] == 3
    assert all(isinstance(images.shape[dim], str) for dim in (0, 2, 3))
    assert [file.name for file in tmp_path.iterdir()] == ['model.onnx']  # with the weights
    assert example['largest_difference'](network, str(out)) < 1e-5
    nn.init.constant_(network[1].bias, 1.0)
    assert example['largest_difference'](network, str(out)) > 1e-2


@pytest.mark.slow
@pytest.mark.parametrize('sparse', [False, True], ids=['dense', 'sparse'])
@pytest.mark.parametrize('demo', DEMOS)
def test_it_exports_the_demo_models(demo, sparse, run_tool, repo, tmp_path):
    pytest.importorskip('onnxruntime')
    pytest.importorskip('onnxscript')
    if demo == 'classifier':
        pytest.importorskip('mmpretrain')
    config, out = repo / 'configs/demo' / DEMOS[demo], tmp_path / 'model.onnx'
    _weights(config, tmp_path / 'weights.pth', sparse)

    output = run_tool(
        repo / 'examples/export_to_onnx.py', config, tmp_path / 'weights.pth', out
    ).stdout

    difference = re.search(r'differs from the model by (\S+) of the largest value', output)[1]
    assert 0 < float(difference) < 1e-4
