"""Every shipped segmenter has the norms that its name says, trains a step and predicts."""

from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config, ConfigDict
from mmengine.dataset import Compose, pseudo_collate
from mmengine.optim import build_optim_wrapper
from mmengine.registry import init_default_scope
from mmengine.structures import PixelData
from mmengine.utils.dl_utils.parrots_wrapper import SyncBatchNorm
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from mmseg.utils import register_all_modules
from torch import nn

from sn_openmmlab.layers.switch_norm import SwitchNorm

CONFIGS = Path(__file__).parents[2] / 'configs'
SHIPPED = sorted([*CONFIGS.glob('segmentation/*/*.py'), *CONFIGS.glob('demo/deeplab*.py')])
LAYERS = {'sn': SwitchNorm, 'gn': nn.GroupNorm, 'syncbn': SyncBatchNorm}
ANY_NORM = (nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.LayerNorm)
CLASSES = {'ade20k': 150, 'cityscapes': 19, 'digits': 11}

# A ResNet has one norm after the stem, one after each convolution of its blocks (2 a block for
# 18, 3 for 50 and 101) and one in each shortcut that changes the shape (3 for 18, else 4).
RESNET = {'r18': 1 + 8 * 2 + 3, 'r50': 1 + 16 * 3 + 4, 'r101': 1 + 33 * 3 + 4}
# The pyramid of DeepLabV3 has one for the pooled image, one each for the four rates and one where
# they meet. In V3+ a separable convolution has two: three of the rates are such, and the two that
# join the pyramid with stage 1, which has one of its own.
PYRAMID = {'deeplab': 1, 'deeplabv3': 1 + 4 + 1, 'deeplabv3plus': 1 + (1 + 3 * 2) + 1 + 1 + 2 * 2}
HEIGHT, WIDTH = 64, 96
PICTURE = (32, 48)


class Shipped:
    """A shipped config with its model, built without pretrained weights."""

    def __init__(self, file: Path) -> None:
        self.of_paper = file.parent.name == 'deeplab'
        self.segmenter, depth, self.norm = file.stem.split('_')[:3]
        self.depth = depth.removesuffix('b-d8')
        self.classes = next(number for data, number in CLASSES.items() if data in file.stem)
        init_default_scope('mmseg')
        self.config = Config.fromfile(file)
        self.images = self.config.train_dataloader.batch_size
        self.places = {
            'backbone': RESNET[self.depth] + self._extra_shortcuts(),
            'decode_head': PYRAMID[self.segmenter],
            'auxiliary_head': 1,
        }
        self.config.model.backbone.init_cfg = None
        # Unlike random weights of the toolbox, pretrained ones let every layer learn at once.
        self.config.model.backbone.zero_init_residual = False
        # Small crops, for speed.
        self.config.model.data_preprocessor.size = (HEIGHT, WIDTH)
        torch.manual_seed(0)
        self.model = MODELS.build(self.config.model)
        self.model.init_weights()
        self.model.train()

    def _extra_shortcuts(self) -> int:
        """Return 1 if the stem is wider than the first stage: a basic block then has a shortcut."""
        backbone = self.config.model.backbone
        widths = [backbone.get(f'{part}_channels', 64) for part in ('stem', 'base')]
        return int(self.depth == 'r18' and widths[0] != widths[1])

    def norms(self, part: str) -> list[nn.Module]:
        """Return the norm layers of a part of the model."""
        module = self.model.get_submodule(part)
        return [layer for layer in module.modules() if isinstance(layer, ANY_NORM)]


@pytest.fixture(scope='module', params=SHIPPED, ids=lambda file: file.stem)
def shipped(request: pytest.FixtureRequest) -> Shipped:
    """Return each shipped config in turn."""
    register_all_modules(init_default_scope=False)
    return Shipped(request.param)


@pytest.fixture(scope='module')
def picture(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """Return the paths of a random image and its random label map, as a dataset lists them."""
    folder = tmp_path_factory.mktemp('picture')
    rng = np.random.default_rng(0)
    cv2.imwrite(str(folder / 'image.png'), rng.integers(0, 256, (*PICTURE, 3), np.uint8))
    cv2.imwrite(str(folder / 'labels.png'), rng.integers(0, 11, PICTURE, np.uint8))
    return dict(
        img_path=str(folder / 'image.png'),
        seg_map_path=str(folder / 'labels.png'),
        label_map=None,
        reduce_zero_label=False,
        seg_fields=[],
    )


def test_norm_layers_are_of_the_type_and_number_that_the_name_says(shipped: Shipped) -> None:
    kind = LAYERS[shipped.norm]
    for part, number in shipped.places.items():
        assert Counter(map(type, shipped.norms(part))) == {kind: number}, part
    # Nowhere else is another one.
    assert Counter(map(type, shipped.norms(''))) == {kind: sum(shipped.places.values())}


def test_norms_have_the_papers_settings_and_all_learn(shipped: Shipped) -> None:
    for layer in shipped.norms(''):
        assert layer.training
        assert all(parameter.requires_grad for parameter in layer.parameters())
        if isinstance(layer, nn.GroupNorm):
            assert layer.num_groups == 32
        if isinstance(layer, SwitchNorm):
            assert (layer.momentum, layer.affine) == (0.1, True)
            assert layer.scopes == ('in', 'ln', 'bn')
            # As where the weights are from; the quickstart has none.
            assert layer.correction == int(shipped.depth != 'r18')


def test_backbone_is_the_papers(shipped: Shipped) -> None:
    backbone = shipped.model.backbone
    assert backbone.conv1.kernel_size == (7, 7)
    assert all(parameter.requires_grad for parameter in backbone.parameters())
    with torch.no_grad():
        stages = backbone(torch.zeros(shipped.images, 3, HEIGHT, WIDTH))
    assert [HEIGHT // stage.shape[2] for stage in stages] == [4, 8, 8, 8]
    # Rates 2 and 4, of which the first block has half. A block of ResNet-18 has two such
    # convolutions, the second without a rate.
    second = {1} if shipped.depth == 'r18' else set()
    for stage, rate in ((backbone.layer3, 2), (backbone.layer4, 4)):
        rates = [{m.dilation[0] for m in block.modules() if is_spatial(m)} for block in stage]
        assert rates == [{rate // 2, *second}] + [{rate, *second}] * (len(stage) - 1)


def is_spatial(layer: nn.Module) -> bool:
    """Return whether it is a 3x3 convolution."""
    return isinstance(layer, nn.Conv2d) and layer.kernel_size == (3, 3)


def test_heads_have_the_classes_and_the_papers_auxiliary_loss(shipped: Shipped) -> None:
    model = shipped.model
    for head in (model.decode_head, model.auxiliary_head):
        assert head.conv_seg.out_channels == head.num_classes == shipped.classes
    assert model.decode_head.loss_decode.loss_weight == 1
    assert model.auxiliary_head.loss_decode.loss_weight == 0.4
    if shipped.of_paper:
        for head, channels in ((model.decode_head, 2048), (model.auxiliary_head, 1024)):
            (layer,) = head.convs
            assert layer.conv.weight.shape == (512, channels, 3, 3)
            assert head.conv_seg.weight.shape[1:] == (512, 1, 1)
            assert head.dropout is None


def test_weights_decay_but_norms_do_not(shipped: Shipped) -> None:
    wrapper = build_optim_wrapper(shipped.model, shipped.config.optim_wrapper)
    groups = {
        id(parameter): group
        for group in wrapper.optimizer.param_groups
        for parameter in group['params']
    }
    optimizer = shipped.config.optim_wrapper.optimizer
    seen = Counter()
    for layer in shipped.model.modules():
        for name, parameter in layer.named_parameters(recurse=False):
            group = groups[id(parameter)]
            assert group['lr'] == optimizer.lr
            if isinstance(layer, ANY_NORM):
                assert group['weight_decay'] == 0, name
                seen[name] += 1
            elif name == 'weight':
                assert group['weight_decay'] == optimizer.weight_decay > 0
                seen['convolutions'] += 1
            else:
                decay = 0 if shipped.of_paper else optimizer.weight_decay
                assert group['weight_decay'] == decay
                seen['biases'] += 1
    # Only the convolutions to the classes have a bias.
    assert seen['biases'] == 2
    assert seen['convolutions'] > 20
    assert seen['weight'] == seen['bias'] == sum(shipped.places.values())
    mixed = seen['weight'] if shipped.norm == 'sn' else 0
    assert seen['mean_weight'] == seen['var_weight'] == mixed


def test_a_step_learns(shipped: Shipped) -> None:
    model, config = shipped.model, shipped.config
    batch = random_batch(shipped, shipped.images)
    wrapper = build_optim_wrapper(model, config.optim_wrapper)
    before = {name: value.clone() for name, value in model.named_parameters()}
    losses = model.train().train_step(batch, wrapper)
    assert all(torch.isfinite(torch.as_tensor(loss)) for loss in losses.values())
    assert losses['loss'].item() == pytest.approx(
        losses['decode.loss_ce'].item() + losses['aux.loss_ce'].item()
    )
    moved = Counter(
        name.rsplit('.', 1)[1]
        for name, value in model.named_parameters()
        if not torch.equal(value, before[name])
    )
    assert all(torch.isfinite(value).all() for value in model.parameters())
    everywhere = sum(shipped.places.values())
    assert moved['bias'] >= everywhere
    if shipped.norm == 'sn':
        assert moved['mean_weight'] and moved['var_weight']


def test_one_image_is_enough(shipped: Shipped) -> None:
    model = shipped.model.train()
    model.zero_grad()
    data = model.data_preprocessor(random_batch(shipped, 1), training=True)
    losses = model(**data, mode='loss')
    loss = losses['decode.loss_ce'] + losses['aux.loss_ce']
    loss.backward()
    assert torch.isfinite(loss)
    for name, parameter in model.named_parameters():
        assert torch.isfinite(parameter.grad).all(), name
        # One step of float32 may be too small to see; that a ratio can learn is not.
        assert parameter.grad.any(), name


def random_batch(shipped: Shipped, images: int) -> dict:
    """Return random images with random labels."""
    generator = torch.Generator().manual_seed(0)
    size = (HEIGHT, WIDTH)
    pictures = torch.randint(0, 256, (images, 3, *size), generator=generator).to(torch.uint8)
    labels = torch.randint(0, shipped.classes, (images, 1, *size), generator=generator)
    samples = [SegDataSample(gt_sem_seg=PixelData(data=truth)) for truth in labels]
    for sample in samples:
        sample.set_metainfo(dict(img_shape=size, ori_shape=size))
    return dict(inputs=list(pictures), data_samples=samples)


def shrunken(pipeline: list[ConfigDict], factor: int) -> list[ConfigDict]:
    """Return a pipeline that resizes to smaller sizes, for speed, at the same ratios."""
    pipeline = ConfigDict(pipeline=pipeline).copy().pipeline
    steps = [step for part in pipeline for step in flat(part)]
    for step in steps:
        if step.type == 'Resize' and 'scale' in step:
            step.scale = tuple(side // factor for side in step.scale)
    return pipeline


def flat(step: object) -> Iterator[ConfigDict]:
    """Return a step and those inside it."""
    if isinstance(step, dict):
        yield step
        step = step.get('transforms', [])
    if isinstance(step, list | tuple):
        for part in step:
            yield from flat(part)


def test_predictions_are_label_maps_of_the_picture(shipped: Shipped, picture: dict) -> None:
    pipeline = Compose(shrunken(shipped.config.test_dataloader.dataset.pipeline, 8))
    with torch.no_grad():
        (result,) = shipped.model.eval().test_step(pseudo_collate([pipeline(picture.copy())]))
    shipped.model.train()
    labels = result.pred_sem_seg.data
    assert labels.shape == (1, *PICTURE)
    assert 0 <= labels.min() <= labels.max() < shipped.classes
    assert result.gt_sem_seg.data.shape == (1, *PICTURE)


def test_multi_scale_prediction_is_the_mean_over_the_scales(
    shipped: Shipped, picture: dict
) -> None:
    load, augment = shrunken(shipped.config.tta_pipeline, 8)
    model = shipped.model.eval()
    several = MODELS.build(dict(shipped.config.tta_model, module=model))
    with torch.no_grad():
        item = Compose([load, augment])(picture.copy())
        (result,) = several.test_step(pseudo_collate([item]))
        views = [Compose([load, *steps])(picture.copy()) for steps in product(*augment.transforms)]
        singles = [model.test_step(pseudo_collate([view]))[0] for view in views]
    shipped.model.train()
    mean = sum(single.seg_logits.data.softmax(0) for single in singles)
    assert torch.equal(result.pred_sem_seg.data.squeeze(), mean.argmax(0))
    assert len({tuple(view['inputs'].shape) for view in views}) > 2
