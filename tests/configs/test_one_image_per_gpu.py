"""DeepLabV3+ trains at one image, where its pooled image is one value a channel."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmengine.registry import init_default_scope
from mmengine.structures import PixelData
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from mmseg.utils import register_all_modules
from torch import nn

CONFIG = Path(__file__).parents[2] / (
    'configs/segmentation/deeplabv3plus/deeplabv3plus_r50b-d8_sn_4xb2-80k_cityscapes-512x1024.py'
)
SIDE = 64


@pytest.fixture
def build() -> Callable[[str], tuple[nn.Module, Config]]:
    """Return a function that builds the shipped model with the given norm, and its config."""
    register_all_modules(init_default_scope=False)
    init_default_scope('mmseg')

    def build_model(norm: str) -> tuple[nn.Module, Config]:
        config = Config.fromfile(CONFIG)
        model = config.model
        model.backbone.init_cfg = None
        model.data_preprocessor.size = (SIDE, SIDE)
        for part in (model.backbone, model.decode_head, model.auxiliary_head):
            part.norm_cfg = dict(type=norm)
        torch.manual_seed(0)
        built = MODELS.build(model)
        built.init_weights()
        return built.train(), config

    return build_model


def one_image() -> dict:
    """Return an image with one class in its left half and another in its right half."""
    picture = torch.randint(0, 80, (3, SIDE, SIDE), generator=torch.Generator().manual_seed(0))
    labels = torch.zeros(1, SIDE, SIDE, dtype=torch.long)
    picture[..., SIDE // 2 :] += 150
    labels[..., SIDE // 2 :] = 1
    sample = SegDataSample(gt_sem_seg=PixelData(data=labels))
    sample.set_metainfo(dict(img_shape=(SIDE, SIDE), ori_shape=(SIDE, SIDE)))
    return dict(inputs=[picture.to(torch.uint8)], data_samples=[sample])


def test_loss_is_finite_and_falls(build: Callable) -> None:
    model, config = build('SN')
    pooled = []
    model.decode_head.image_pool[1].register_forward_pre_hook(
        lambda module, args: pooled.append(tuple(args[0].shape))
    )
    wrapper = build_optim_wrapper(model, config.optim_wrapper)
    losses = [model.train_step(one_image(), wrapper)['loss'].item() for _ in range(12)]
    assert set(pooled) == {(1, 2048, 1, 1)}
    assert torch.isfinite(torch.tensor(losses)).all()
    assert sum(losses[-3:]) < 0.5 * sum(losses[:3])
    for name, value in model.state_dict().items():
        assert torch.isfinite(value).all(), name
    # The statistics that it kept serve a prediction.
    with torch.no_grad():
        (result,) = model.eval().test_step(one_image())
    assert torch.isfinite(result.seg_logits.data).all()


def test_batch_normalization_cannot(build: Callable) -> None:
    model, config = build('BN')
    wrapper = build_optim_wrapper(model, config.optim_wrapper)
    with pytest.raises(ValueError, match='Expected more than 1 value per channel'):
        model.train_step(one_image(), wrapper)
