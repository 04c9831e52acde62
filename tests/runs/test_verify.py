"""A converted checkpoint is loaded into its model, and what does not fit is named."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
import torch

from sn_openmmlab.checkpoints.files.weights import find_weights
from sn_openmmlab.checkpoints.plans.classifier import keep_classifier
from sn_openmmlab.checkpoints.plans.layouts import to_toolbox
from sn_openmmlab.checkpoints.plans.sn_resnet import plan_sn_resnet
from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.verify import verify

pytest.importorskip('mmdet')


@pytest.fixture
def check(tmp_path: Path) -> Callable[[dict], str]:
    """A function that verifies weights in a file."""

    def save_and_verify(state: dict) -> str:
        torch.save({'state_dict': state, 'meta': {}}, tmp_path / 'out.pth')
        return verify(str(tmp_path / 'out.pth'), tmp_path / 'no_configs')

    return save_and_verify


@pytest.fixture(scope='module')
def narrow() -> dict:
    """The weights of a narrow ResNet-50; tests take copies of the dict."""
    resnet = import_module('mmdet.models').ResNet
    norm = dict(type='SN', scopes=('in', 'ln'))
    return resnet(depth=50, base_channels=8, stem_channels=8, norm_cfg=norm).state_dict()


def test_converted_backbone_fits(outlined: Callable[[str], dict], check: Callable) -> None:
    backbone = to_toolbox(find_weights(outlined('resnet50_sn_8x1')))
    assert check(backbone) == 'a ResNet-50 with SN of in, ln'


def test_classifier_fits(outlined: Callable[[str], dict], check: Callable) -> None:
    plan = keep_classifier(
        plan_sn_resnet(outlined('resnet50_sn_segmentation_pretrained')['state_dict'])
    )
    assert check(plan.convert()) == 'a ResNet-50 with SN of in, ln, bn and its classifier'


FAULTS = {
    'missing': (
        lambda s: {k: v for k, v in s.items() if not k.startswith('layer4.2.')},
        r'missing layer4\.2\.conv1\.weight, .* and 12 more; unexpected nothing\.',
    ),
    'missing stage': (
        lambda s: {k: v for k, v in s.items() if not k.startswith('layer4.')},
        r'fit a ResNet-50 with SN of in, ln: missing layer4\.0\.conv1\.weight, .* more; unexp',
    ),
    'unexpected': (
        lambda s: s | {'fc.bias': torch.ones(9)},
        r'missing nothing; unexpected fc\.bias\.',
    ),
    'both': (
        lambda s: {k.replace('layer1.0.sn1.b', 'layer1.0.bn1.b'): v for k, v in s.items()},
        r'missing layer1\.0\.sn1\.bias; unexpected layer1\.0\.bn1\.bias\.',
    ),
    'shape': (
        lambda s: s | {'sn1.weight': torch.ones(1, 8, 1, 1)},
        r'has the shape \(1, 8, 1, 1\), not \(8,\), of sn1\.weight\.',
    ),
    'repeated': (
        lambda s: s | {'conv1.weight': torch.ones(1).expand(8, 3, 7, 7)},
        r'not dense floating-point tensors: conv1\.weight',
    ),
    'not converted': (
        lambda s: {f'module.{k}': v for k, v in s.items()},
        r'it was not converted, since it has no layer1\.0\.sn1\.mean_weight',
    ),
    'nothing': (lambda s: {}, 'it holds no tensor by name'),
}


@pytest.mark.parametrize('fault', FAULTS)
def test_what_does_not_fit_is_named(fault: str, narrow: dict, check: Callable) -> None:
    spoil, message = FAULTS[fault]
    with pytest.raises(UsageError, match=message) as caught:
        check(spoil(dict(narrow)))
    assert 'out.pth: it ' in str(caught.value) or 'out.pth: these ' in str(caught.value)
