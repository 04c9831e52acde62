"""The released ADE20K pair becomes the paper's DeepLab, heads included."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import DefaultScope
from torch import Tensor
from torch.nn import functional as F

from sn_openmmlab.checkpoints.convert import converted_checkpoint, plan_files
from sn_openmmlab.checkpoints.plans.segmenter import plan_decoder, plan_encoder
from sn_openmmlab.errors import UsageError

CONFIG = 'configs/segmentation/deeplab/deeplab_r50b-d8_sn_8xb2-100k_ade20k-450x450.py'
HEADS = {'decode_head': ('', 2048), 'auxiliary_head': ('_deepsup', 1024)}


@pytest.fixture(scope='session')
def encoder(outlined: Callable[[str], dict]) -> dict[str, Tensor]:
    return outlined('ade20k_encoder')


@pytest.fixture(scope='session')
def decoder(released: Callable[[str], dict]) -> dict[str, Tensor]:
    return released('ade20k_decoder')


def head_by_hand(x: Tensor, weights: Mapping[str, Tensor], suffix: str) -> Tensor:
    """Compute the authors' head in evaluation: 3x3 convolution, SN, ReLU, 1x1 convolution."""
    conv, norm = f'cbr{suffix}.0', f'cbr{suffix}.1'
    x = F.conv2d(x, weights[f'{conv}.weight'], padding=1)
    sn = {part: weights[f'{norm}.{part}'] for part in ('weight', 'bias')}
    mean_in, var_in = x.mean((2, 3), keepdim=True), x.var((2, 3), keepdim=True)
    mean_ln = mean_in.mean(1, keepdim=True)
    var_ln = (var_in + mean_in**2).mean(1, keepdim=True) - mean_ln**2
    mean_bn = weights[f'{norm}.running_mean'][..., None]
    var_bn = weights[f'{norm}.running_var'][..., None]
    w = weights[f'{norm}.mean_weight'].softmax(0)
    v = weights[f'{norm}.var_weight'].softmax(0)
    mean = w[0] * mean_in + w[1] * mean_ln + w[2] * mean_bn
    var = v[0] * var_in + v[1] * var_ln + v[2] * var_bn
    x = F.relu(sn['weight'] * (x - mean) / (var + 1e-5).sqrt() + sn['bias'])
    last = f'conv_last{suffix}'
    return F.conv2d(x, weights[f'{last}.weight'], weights[f'{last}.bias'])


@pytest.mark.parametrize('name', HEADS)
def test_heads_compute_what_the_authors_do(
    name: str, decoder: dict[str, Tensor], repo: Path
) -> None:
    models = pytest.importorskip('mmseg.registry').MODELS
    config = Config.fromfile(repo / CONFIG).model[name]
    config.norm_cfg.correction = 1
    suffix, channels = HEADS[name]
    # Other tests may have left another scope.
    with DefaultScope.overwrite_default_scope('mmseg'):
        head = models.build(config).eval()
    state = plan_decoder(decoder).convert()
    own = {key.removeprefix(f'{name}.'): value for key, value in state.items() if name in key}
    head.load_state_dict(own)
    x = torch.randn(2, channels, 7, 5, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        # The head picks its own stage.
        stages = [x.new_zeros(0) for _ in range(4)]
        stages[config.in_index] = x
        ours, theirs = head(stages), head_by_hand(x, decoder, suffix)
    assert (ours - theirs).norm() / theirs.norm() < 1e-4


def test_whole_model_is_filled(
    encoder: dict[str, Tensor], decoder: dict[str, Tensor], repo: Path
) -> None:
    models = pytest.importorskip('mmseg.registry').MODELS
    config = Config.fromfile(repo / CONFIG)
    config.model.backbone.init_cfg = None
    state = plan_encoder(encoder).convert() | plan_decoder(decoder).convert()
    assert len(state) == 371 + 18
    with DefaultScope.overwrite_default_scope('mmseg'):
        model = models.build(config.model)
    model.load_state_dict(state)
    assert torch.equal(state['backbone.layer3.4.sn2.bias'], encoder['layer3.4.sn2.bias'].flatten())


def test_checkpoint_records_its_images(outlined_file: Callable[[str], Path], repo: Path) -> None:
    files = [str(outlined_file(f'ade20k_{part}')) for part in ('encoder', 'decoder')]
    meta = converted_checkpoint(plan_files(files))['meta']
    preprocessing = Config.fromfile(repo / CONFIG).model.data_preprocessor
    assert meta['data_preprocessor'] == {
        'mean': [102.9801, 115.9465, 122.7717],
        'std': [1, 1, 1],
        'bgr_to_rgb': False,
    }
    assert {name: preprocessing[name] for name in meta['data_preprocessor']} == meta[
        'data_preprocessor'
    ]
    assert [source['file'] for source in meta['sources']] == [
        'ade20k_encoder.pth',
        'ade20k_decoder.pth',
    ]
    json.dumps(meta)


ENCODERS = {
    'ImageNet backbone': (
        lambda w: w | {'fc.weight': torch.ones(9, 2048), 'fc.bias': torch.ones(9)},
        r'a classifier, fc\.weight, fc\.bias: it is a backbone of ImageNet, not the encoder',
    ),
    'decoder': (lambda w: {'cbr.0.weight': torch.ones(1)}, 'give ENCODER DECODER OUT'),
    'without bn': (
        lambda w: {
            k: v[:2] if k.endswith(('mean_weight', 'var_weight')) else v
            for k, v in w.items()
            if 'running' not in k
        },
        r'with SN of in, ln, bn, but this looks like a ResNet-50 v1 with SN of in, ln, in',
    ),
    'missing': (
        lambda w: {k: v for k, v in w.items() if 'layer4.2.sn3' not in k},
        r'lacks backbone\.layer4\.2\.sn3\.weight, .* and 3 more',
    ),
}


@pytest.mark.parametrize('fault', ENCODERS)
def test_other_encoders_are_refused(fault: str, encoder: dict[str, Tensor]) -> None:
    spoil, message = ENCODERS[fault]
    with pytest.raises(UsageError, match=message):
        plan_encoder(spoil(dict(encoder))).check()


DECODERS = {
    'no deep supervision': (
        lambda w: {k: v for k, v in w.items() if 'deepsup' not in k},
        r'lacks auxiliary_head\.convs\.0\.conv\.weight, .* and 6 more\.',
    ),
    'other classes': (
        lambda w: w | {'conv_last.weight': torch.ones(21, 512, 1, 1)},
        r'has the shape \(21, 512, 1, 1\), not \(150, 512, 1, 1\), of conv_last\.weight\.',
    ),
    'more': (
        lambda w: w | {'ppm.0.1.weight': torch.ones(512, 2048, 1, 1)},
        r'also has ppm\.0\.1\.weight\.',
    ),
    'a backbone': (
        lambda w: {'conv1.weight': torch.ones(64, 3, 7, 7)},
        r'lacks decode_head\.convs\.0\.conv\.weight, .* and also has conv1\.weight\.',
    ),
    'flat γ': (
        lambda w: w | {'cbr.1.weight': torch.ones(512)},
        re.escape('has the shape (512,), not (1, 512, 1, 1), of cbr.1.weight.'),
    ),
}


@pytest.mark.parametrize('fault', DECODERS)
def test_other_decoders_are_refused(fault: str, decoder: dict[str, Tensor]) -> None:
    spoil, message = DECODERS[fault]
    with pytest.raises(UsageError, match=message):
        plan_decoder(spoil(dict(decoder))).check()


def test_parallel_prefix_is_taken_off(decoder: dict[str, Tensor]) -> None:
    plan = plan_decoder({f'module.{name}': weight for name, weight in decoder.items()})
    plan.check()
    assert plan.pairs['module.conv_last_deepsup.bias'] == 'auxiliary_head.conv_seg.bias'
