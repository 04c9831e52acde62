"""Each network of the ImageNet configs has the norms of its name, trains a step and predicts.

Configs that differ only in the batch have the same network, as `test_classification_protocol.py`
shows, so one of them stands for the others.
"""

import math
from collections import Counter
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.dataset import Compose, pseudo_collate
from mmengine.optim import build_optim_wrapper
from mmengine.registry import init_default_scope
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample
from torch import nn

from sn_openmmlab.layers.switch_norm import SwitchNorm

FOLDER = Path(__file__).parents[2] / 'configs/classification/resnet'
NETWORKS = [
    'resnet50_bn_8xb32_in1k',
    'resnet50_gn_8xb32_in1k',
    'resnet50_sn_8xb32_in1k',
    'resnet50_sn_8xb1_in1k',
    'resnet50_sn-g2_8xb32_in1k',
    'resnet101_sn_8xb32_in1k',
]
LAYERS = {'bn': nn.BatchNorm2d, 'gn': nn.GroupNorm, 'sn': SwitchNorm}
ANY_NORM = (nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.LayerNorm, SwitchNorm)
# One norm after the stem, three in each block, four in the shortcuts that change the shape.
NORMS = {50: 1 + 16 * 3 + 4, 101: 1 + 33 * 3 + 4}


class Shipped:
    """A shipped config with its model, initialized as for a training."""

    def __init__(self, name: str) -> None:
        norm, setting = name.split('_')[1:3]
        self.norm, _, groups = norm.partition('-g')
        self.ratio_groups = int(groups or 1)
        self.one_image = setting == '8xb1'
        self.config = Config.fromfile(FOLDER / f'{name}.py')
        init_default_scope('mmpretrain')
        torch.manual_seed(0)
        # A runner gives the model its preprocessor in the same way.
        preprocessor = self.config.data_preprocessor
        self.model = MODELS.build(dict(self.config.model, data_preprocessor=preprocessor))
        self.model.init_weights()

    def norms(self) -> list[nn.Module]:
        """Return the norm layers of the model."""
        return [layer for layer in self.model.modules() if isinstance(layer, ANY_NORM)]


@pytest.fixture(scope='module', params=NETWORKS)
def shipped(request: pytest.FixtureRequest) -> Shipped:
    """Return each model in turn."""
    return Shipped(request.param)


@pytest.fixture(scope='module')
def white(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the path of a white image with a black corner."""
    image = np.full((60, 80, 3), 255, np.uint8)
    image[:4, :4] = 0
    file = str(tmp_path_factory.mktemp('white') / 'white.png')
    cv2.imwrite(file, image)
    return file


def test_norms_are_of_the_type_and_number_that_the_name_says(shipped: Shipped) -> None:
    depth = shipped.config.model.backbone.depth
    assert Counter(map(type, shipped.norms())) == {LAYERS[shipped.norm]: NORMS[depth]}
    for layer in shipped.norms():
        if isinstance(layer, nn.GroupNorm):
            assert layer.num_groups == 32
        if isinstance(layer, SwitchNorm):
            assert layer.scopes == (('in', 'ln') if shipped.one_image else ('in', 'ln', 'bn'))
            assert (layer.correction, layer.momentum) == (1, 0.1)
            assert layer.num_ratio_groups == shipped.ratio_groups
            # Ratios for each group of channels, where there are several.
            assert (layer.mean_weight.dim() == 2) == (shipped.ratio_groups > 1)


def test_parameters_start_as_the_paper_says(shipped: Shipped) -> None:
    for layer in shipped.norms():
        assert (layer.weight == 1).all()
        assert (layer.bias == 0).all()
        if isinstance(layer, SwitchNorm):
            assert (layer.mean_weight == 1).all()
            assert (layer.var_weight == 1).all()
    # He et al.: normal, with a variance of 2 over the number of values that an input goes to.
    for conv in (shipped.model.backbone.layer4[2].conv2, shipped.model.backbone.layer3[0].conv1):
        fan_out = conv.out_channels * math.prod(conv.kernel_size)
        assert conv.weight.std().item() == pytest.approx(math.sqrt(2 / fan_out), rel=0.01)
        assert conv.bias is None


def test_a_step_moves_every_weight(shipped: Shipped) -> None:
    model = shipped.model.train()
    wrapper = build_optim_wrapper(model, shipped.config.optim_wrapper)
    (group,) = wrapper.optimizer.param_groups
    assert group['weight_decay'] == 1e-4
    assert len(group['params']) == len(list(model.parameters()))

    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (1 if shipped.one_image else 2, 3, 64, 64), generator=generator)
    samples = [DataSample().set_gt_label(7 + i) for i in range(len(images))]
    batch = model.data_preprocessor(dict(inputs=images, data_samples=samples), training=True)
    loss = model(**batch, mode='loss')['loss']
    loss.backward()

    assert loss.isfinite()
    before = [parameter.clone() for parameter in model.parameters()]
    for name, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name
    wrapper.step()
    for old, (name, parameter) in zip(before, model.named_parameters(), strict=True):
        assert not torch.equal(old, parameter), name


def test_it_predicts_a_class_for_each_image(shipped: Shipped, white: str) -> None:
    pipeline = Compose(shipped.config.test_dataloader.dataset.pipeline)
    batch = pseudo_collate([pipeline(dict(img_path=white, gt_label=3))])
    assert batch['inputs'][0].shape == (3, 224, 224)
    shipped.model.eval()
    with torch.no_grad():
        (sample,) = shipped.model.test_step(batch)
    assert sample.pred_score.shape == (1000,)
    assert sample.pred_score.sum().item() == pytest.approx(1, abs=1e-5)


def test_noise_of_the_colours_leaves_white_pixels_bright(shipped: Shipped, white: str) -> None:
    np.random.seed(0)
    pipeline = Compose(shipped.config.train_dataloader.dataset.pipeline)
    images = [pipeline(dict(img_path=white, gt_label=3))['inputs'] for _ in range(8)]
    assert {tuple(image.shape) for image in images} == {(3, 224, 224)}
    # The noise is the same in all pixels; its deviation is about 3 in each colour.
    brightest = [image.amax() for image in images]
    assert max(brightest) > 255
    for image in images:
        assert (image > 230).float().mean() > 0.95
