"""Released layouts become the toolboxes' ResNet, and weights that do not fit are named."""

import copy
import io
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor

from sn_openmmlab.checkpoints.files.safe_loading import read_checkpoint
from sn_openmmlab.checkpoints.files.weights import find_weights
from sn_openmmlab.checkpoints.plans.layouts import to_toolbox
from sn_openmmlab.checkpoints.plans.sn_resnet import plan_sn_resnet
from sn_openmmlab.errors import UsageError

# Layout file → its name, how a name in it starts and what the stages are called.
LAYOUTS = {
    'resnet50_sn': ('imagenet', 'module.', 'layer1'),
    'resnet50_sn_8x1': ('imagenet', 'module.', 'layer1'),
    'resnet50_sn_segmentation_pretrained': ('imagenet', '', 'layer1'),
    'ade20k_encoder': ('imagenet', '', 'layer1'),
    'resnet50_sn_detectron_fpn': ('detection-fpn', 'Conv_Body.conv_body.', 'res2'),
    'resnet50_sn_detectron_c4': ('detection-c4', 'Conv_Body.', 'res2'),
}
SCOPES = {2: ('in', 'ln'), 3: ('in', 'ln', 'bn')}
# A name in the toolboxes and in Detectron.
SOME_NAMES = {
    'conv1.weight': 'res1.conv1.weight',
    'sn1.mean_weight': 'res1.sn1.mean_weight',
    'layer1.0.downsample.1.var_weight': 'res2.0.downsample.1.var_weight',
    'layer3.5.sn2.bias': 'res4.5.sn2.bias',
    'layer4.2.conv3.weight': 'res5.2.conv3.weight',
}


@pytest.fixture(scope='session')
def toolbox_shapes() -> Callable[[int, int], dict[str, tuple]]:
    """A function (depth, controls) -> name and shape of each weight of MMDetection's ResNet."""
    resnet = pytest.importorskip('mmdet.models').ResNet

    def shapes(depth: int, controls: int) -> dict[str, tuple]:
        model = resnet(depth=depth, norm_cfg=dict(type='SN', scopes=SCOPES[controls]))
        return {
            name: tuple(weight.shape)
            for name, weight in model.state_dict().items()
            if not name.endswith('num_batches_tracked')
        }

    return shapes


@pytest.fixture(scope='module')
def bare_weights(outlined: Callable[[str], dict]) -> dict[str, Tensor]:
    state = outlined('resnet50_sn_8x1')['state_dict']
    return {
        name.removeprefix('module.'): weight for name, weight in state.items() if '.fc.' not in name
    }


@pytest.fixture
def weights(bare_weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of the smallest layout by bare names, without a classifier, to be changed."""
    return dict(bare_weights)


def shapes_of(state: Mapping[str, Tensor]) -> dict[str, tuple]:
    return {name: tuple(weight.shape) for name, weight in state.items()}


@pytest.mark.parametrize('layout', LAYOUTS)
def test_layout_becomes_the_toolbox_s(
    layout: str, outlined: Callable[[str], dict], toolbox_shapes: Callable
) -> None:
    checkpoint = outlined(layout)
    theirs = find_weights(checkpoint)
    controls = 2 if layout.endswith('8x1') else 3
    plan = plan_sn_resnet(theirs)
    converted = to_toolbox(theirs)
    name, prefix, first_stage = LAYOUTS[layout]
    assert plan.layout.name == name
    assert shapes_of(converted) == toolbox_shapes(50, controls)
    for ours, detectron in SOME_NAMES.items():
        source = prefix + (detectron if first_stage == 'res2' else ours)
        assert torch.equal(converted[ours].flatten(), theirs[source].flatten()), ours
    classifier = {key for key in theirs if re.search(r'(fc|classifier)\.', key)}
    assert set(plan.dropped) == classifier
    assert len(classifier) == (0 if layout == 'ade20k_encoder' else 2)
    assert set(plan.pairs) | classifier == set(theirs)
    assert sorted(plan.pairs.values()) == sorted(converted)


def test_resnet101_is_converted(weights: dict[str, Tensor], toolbox_shapes: Callable) -> None:
    sixth = [name for name in weights if name.startswith('layer3.5.')]
    for block in range(6, 23):
        weights |= {name.replace('.5.', f'.{block}.', 1): weights[name] for name in sixth}
    assert shapes_of(to_toolbox(weights)) == toolbox_shapes(101, 2)


@pytest.mark.parametrize(
    'nest',
    [
        lambda weights: {'epoch': 3, **weights},
        lambda weights: {'model': weights, 'step': 7, 'optimizer': {'state': {0: torch.ones(1)}}},
        lambda weights: {'net': weights, 'acc': torch.tensor(75.0)},
        lambda weights: {'weights': weights},
        lambda weights: {'state_dict': weights, 'ema': {'conv1.weight': torch.ones(1)}},
        lambda weights: {'state_dict': {f'module.{key}': value for key, value in weights.items()}},
        lambda weights: {f'module.module.{key}': value for key, value in weights.items()},
        lambda weights: {key: torch.nn.Parameter(value) for key, value in weights.items()},
        lambda weights: {key: value.bfloat16() for key, value in weights.items()},
    ],
    ids=['bare', 'model', 'net', 'other', 'two', 'ddp', 'twice', 'parameters', 'bfloat16'],
)
def test_nesting_does_not_matter(nest: Callable, weights: dict[str, Tensor]) -> None:
    state = to_toolbox(find_weights(nest(weights)))
    assert len(state) == len(weights)
    for name, weight in weights.items():
        assert not state[name].requires_grad
        ours = state[name].flatten()
        assert torch.equal(ours, weight.flatten().to(ours.dtype))


def test_file_of_an_old_torch_from_a_gpu_is_read(
    weights: dict[str, Tensor], tmp_path: Path
) -> None:
    """torch 0.4 knew only the older format, and a file from Python 2 has names as bytes."""
    state = OrderedDict(weights)
    state._metadata = OrderedDict({'': {'version': 1}})
    stream = io.BytesIO()
    torch.save({'state_dict': state}, stream, _use_new_zipfile_serialization=False)
    written = stream.getvalue()
    for here, there in {
        b'X\x03\x00\x00\x00cpu': b'X\x06\x00\x00\x00cuda:0',
        b'ctorch\nFloatStorage': b'ctorch.cuda\nFloatStorage',
        b'X\x0c\x00\x00\x00conv1.weight': b'U\x0cconv1.weight',
    }.items():
        assert here in written
        written = written.replace(here, there)
    (tmp_path / 'old.pth').write_bytes(written)
    state = to_toolbox(find_weights(read_checkpoint(tmp_path / 'old.pth')))
    assert torch.equal(state['conv1.weight'], weights['conv1.weight'])
    assert len(state) == len(weights)


@pytest.mark.parametrize('prefix', ['', 'backbone.'])
@pytest.mark.parametrize('counter', [False, True])
def test_converted_weights_pass(
    prefix: str, counter: bool, outlined: Callable[[str], dict]
) -> None:
    once = to_toolbox(find_weights(outlined('resnet50_sn')))
    if counter:
        once |= {
            name.replace('running_mean', 'num_batches_tracked'): torch.tensor(9)
            for name in once
            if name.endswith('running_mean')
        }
    named = {prefix + name: weight for name, weight in once.items()}
    assert plan_sn_resnet(named).layout.name == 'toolbox'
    again = to_toolbox(named)
    assert set(again) == set(once)
    assert all(torch.equal(again[name], weight) for name, weight in once.items())


def test_result_is_independent_of_the_checkpoint(weights: dict[str, Tensor]) -> None:
    before = copy.deepcopy(weights)
    for weight in to_toolbox(weights).values():
        weight.zero_()
    assert weights.keys() == before.keys()
    assert all(torch.equal(weights[name], before[name]) for name in weights)


CONV, GAMMA = 'layer2.1.conv2.weight', 'layer2.1.sn2.weight'


def without(*starts: str) -> Callable:
    return lambda weights: {k: v for k, v in weights.items() if not k.startswith(starts)}


def pre_activation(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    for name, weight in weights.items():
        conv = weights.get(name.replace('.sn1.', '.conv1.').rsplit('.', 1)[0] + '.weight')
        if re.search(r'layer\d\.\d\.sn1\.(weight|bias)', name):
            weights[name] = torch.ones(1, conv.shape[1], 1, 1)
        else:
            weights[name] = weight
    return without('layer1.0.downsample.1', 'layer2.0.downsample.1')(weights)


FAULTS = {
    'no block': (without('layer2.3.'), r'lacks layer2\.3\.conv1\.weight, .* and 12 more\.'),
    'no stage': (without('layer4.'), r'lacks layer4\.0\.conv1\.weight'),
    'no stem': (without('conv1', 'sn1'), r'lacks conv1\.weight, sn1\.weight'),
    'no scope': (without('layer2.1.sn2.var_weight'), r'lacks layer2\.1\.sn2\.var_weight\.'),
    'more': (lambda w: w | {'extra.weight': torch.ones(1)}, r'also has extra\.weight\.'),
    'two names': (
        lambda w: w | {f'module.{CONV}': w[CONV]},
        r'also has module\.layer2\.1\.conv2\.weight\.',
    ),
    'deeper': (
        lambda w: w | {k.replace('layer2.3', 'layer2.4'): v for k, v in w.items()},
        r'also has layer2\.4\.conv1\.weight, .* and 12 more',
    ),
    'conv shape': (
        lambda w: w | {CONV: torch.ones(128, 64, 3, 3)},
        r'has the shape \(128, 64, 3, 3\), not \(128, 128, 3, 3\), of layer2\.1\.conv2\.weight\.',
    ),
    'γ shape': (
        lambda w: w | {GAMMA: torch.ones(1, 64, 1, 1)},
        r'has the shape \(1, 64, 1, 1\), not \(1, 128, 1, 1\), of layer2\.1\.sn2\.weight\.',
    ),
    'γ flat': (lambda w: w | {GAMMA: torch.ones(128)}, r'has the shape \(128,\), not \(1, 128'),
    'other scopes': (
        lambda w: w | {'layer2.1.sn2.mean_weight': torch.ones(3)},
        r'has the shape \(3,\), not \(2,\), of layer2\.1\.sn2\.mean_weight\.',
    ),
    'gigantic': (
        lambda w: w | {CONV: torch.ones(1).expand(10**9, 10**6, 3, 3)},
        r'has the shape \(1000000000, 1000000, 3, 3\), not',
    ),
    'repeated': (lambda w: w | {CONV: torch.ones(1).expand(128, 128, 3, 3)}, f'dense.*: {CONV}'),
    'integers': (lambda w: w | {CONV: w[CONV].int()}, f'dense floating-.*: {CONV}'),
    'complex': (lambda w: w | {CONV: w[CONV] + 0j}, f'dense floating-.*: {CONV}'),
    'sparse': (lambda w: w | {CONV: w[CONV].to_sparse()}, f'dense floating-.*: {CONV}'),
    'no memory': (
        lambda w: w | {CONV: w[CONV].to('meta')},
        f'dense floating-.*: {CONV}',
    ),
    'quantized': (
        lambda w: w | {CONV: torch.quantize_per_tensor(w[CONV], 0.1, 0, torch.qint8)},
        f'dense floating-.*: {CONV}',
    ),
    'a list': (
        lambda w: w | {CONV: [1.0]},
        r'layer2\.1\.conv2\.weight is not a tensor, but a list',
    ),
    'mixture': (
        lambda w: {k.replace('layer4', 'Conv_Body.res5'): v for k, v in w.items()},
        r'lacks layer4\.0\.conv1.* and also has Conv_Body\.res5\.0\.conv1\.weight',
    ),
    'v2': (
        pre_activation,
        r'pre-activation ResNet \(v2\).* layer1\.1\.sn1\.weight has 256 ',
    ),
    'BatchNorm': (
        lambda w: {k.replace('sn', 'bn'): v for k, v in w.items() if 'n_we' not in k},
        r'no ResNet with Switchable Normalization .*, but conv1\.weight, bn1\.weight',
    ),
    'detector': (
        lambda w: {f'Conv_Body.{k}': v for k, v in w.items()} | {'RPN.conv.bias': torch.ones(1)},
        r"it looks like the authors' Faster R-CNN .*, but lacks backbone\.conv1\.weight",
    ),
    'control characters': (
        lambda w: w | {'\x1b[2J.weight': torch.ones(1)},
        r'also has \\x1b\[2J\.weight\.',
    ),
    'a long name': (lambda w: w | {9999 * 'a': torch.ones(1)}, r'also has a{80}…\.'),
    'nothing': (lambda w: {}, 'holds no tensor by name'),
    'two unknown sets': (
        lambda w: {'first': w, 'second': w},
        'several sets of weights, first, second: save only one of them',
    ),
}


@pytest.mark.parametrize('fault', FAULTS)
@pytest.mark.filterwarnings('ignore')
def test_what_does_not_fit_is_named(fault: str, weights: dict[str, Tensor]) -> None:
    spoil, message = FAULTS[fault]
    with pytest.raises(UsageError, match=message) as caught:
        to_toolbox(find_weights(spoil(weights)))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500
    assert str(caught.value).endswith('.')
