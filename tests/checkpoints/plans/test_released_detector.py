"""The authors' trained detectors become those of MMDetection."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import DefaultScope
from torch import Tensor

from sn_openmmlab.checkpoints.plans.layouts import plan_weights
from sn_openmmlab.checkpoints.plans.released_detector import plan_released_detector
from sn_openmmlab.errors import UsageError

# List of keys → layout, number of keys, number of λ of bn that are folded.
FILES = {
    'faster_rcnn_r50_fpn_sn': ('faster-rcnn-fpn-8x2', 441, 20),
    'faster_rcnn_r50_fpn_sn_8x1': ('faster-rcnn-fpn-8x1', 319, 0),
    'mask_rcnn_r50_fpn_sn_8x1': ('mask-rcnn-fpn-8x1', 361, 0),
    'faster_rcnn_r50_c4_sn': ('faster-rcnn-c4', 381, 0),
    'scratch_mask_rcnn_r50_fpn_sn': ('mask-rcnn-fpn-scratch', 499, 0),
}
FPN, MASK, C4 = 'faster_rcnn_r50_fpn_sn', 'scratch_mask_rcnn_r50_fpn_sn', 'faster_rcnn_r50_c4_sn'
# Some names by hand; the FPN's lists run the other way.
NAMES = {
    FPN: {
        'Conv_Body.conv_body.res1.conv1.weight': 'backbone.conv1.weight',
        'Conv_Body.conv_body.res2.0.downsample.0.weight': 'backbone.layer1.0.downsample.0.weight',
        'Conv_Body.conv_body.res5.2.conv3.weight': 'backbone.layer4.2.conv3.weight',
        'Conv_Body.conv_top.0.weight': 'neck.lateral_convs.3.conv.weight',
        'Conv_Body.topdown_lateral_modules.0.conv_lateral.0.weight': (
            'neck.lateral_convs.2.conv.weight'
        ),
        'Conv_Body.topdown_lateral_modules.2.conv_lateral.0.weight': (
            'neck.lateral_convs.0.conv.weight'
        ),
        'Conv_Body.posthoc_modules.0.0.weight': 'neck.fpn_convs.3.conv.weight',
        'Conv_Body.posthoc_modules.3.0.weight': 'neck.fpn_convs.0.conv.weight',
        'RPN.FPN_RPN_conv.weight': 'rpn_head.rpn_conv.weight',
        'Box_Head.fc1.weight': 'roi_head.bbox_head.shared_fcs.0.weight',
        'Box_Head.fc2.weight': 'roi_head.bbox_head.shared_fcs.1.weight',
    },
    MASK: {
        'Box_Head.convs.9.weight': 'roi_head.bbox_head.shared_convs.3.conv.weight',
        'Box_Head.fc.weight': 'roi_head.bbox_head.shared_fcs.0.weight',
        'Mask_Head.conv_fcn.6.weight': 'roi_head.mask_head.convs.2.conv.weight',
        'Mask_Head.upconv.weight': 'roi_head.mask_head.upsample.weight',
    },
    C4: {
        'Conv_Body.res4.5.conv2.weight': 'backbone.layer3.5.conv2.weight',
        'RPN.RPN_conv.weight': 'rpn_head.rpn_conv.weight',
        'Box_Head.res5.0.downsample.0.weight': (
            'roi_head.shared_head.layer4.0.downsample.0.weight'
        ),
        'Box_Head.res5.2.conv3.weight': 'roi_head.shared_head.layer4.2.conv3.weight',
    },
}


@pytest.fixture(scope='module', params=FILES)
def released_file(request: pytest.FixtureRequest, outlined: Callable) -> tuple[str, dict]:
    """Return the name and the weights of each file in turn."""
    return request.param, outlined(request.param)['model']


def test_every_weight_has_its_place_in_the_config(released_file: tuple, repo: Path) -> None:
    models = pytest.importorskip('mmdet.registry').MODELS
    name, weights = released_file
    layout, keys, folded = FILES[name]
    plan = plan_weights(weights)
    plan.check()
    assert (plan.layout.name, plan.layout.of_authors) == (layout, True)
    assert len(plan.pairs) == len(weights) == keys
    assert plan.dropped == []
    assert sum(plan.is_folded(target) for target in plan.expected) == folded
    config = Config.fromfile(repo / 'configs' / plan.layout.config)
    with DefaultScope.overwrite_default_scope('mmdet'):
        model = models.build(config.model)
    model.load_state_dict(plan.convert())
    images = config.model.data_preprocessor
    assert {key: images[key] for key in plan.release.images} == plan.release.images


@pytest.mark.parametrize('file', NAMES)
def test_weights_go_where_they_belong(file: str, outlined: Callable) -> None:
    """No two weights of a stand-in have the same values."""
    weights = outlined(file)['model']
    state = plan_weights({f'module.{name}': weight for name, weight in weights.items()}).convert()
    for theirs, ours in NAMES[file].items():
        assert torch.equal(state[ours], weights[theirs]), ours
    norm = 'Conv_Body.' + ('' if file == C4 else 'conv_body.') + 'res3.1.sn2'
    for part in ('weight', 'bias', 'mean_weight', 'running_var'):
        ours = state[f'backbone.layer2.1.sn2.{part}']
        assert torch.equal(ours, weights[f'{norm}.{part}'].flatten())


def rows_of(weight: Tensor) -> Tensor:
    """Return a weight of this shape whose rows hold their numbers."""
    numbers = torch.arange(len(weight)).float()
    return numbers.reshape(-1, *[1] * (weight.dim() - 1)).expand(weight.shape).contiguous()


def test_classes_are_in_the_order_of_mmdetection(outlined: Callable) -> None:
    weights = outlined(MASK)['model']
    last = ('Box_Outs.cls_score', 'Box_Outs.bbox_pred', 'Mask_Outs.classify')
    for name in (f'{module}.{part}' for module in last for part in ('weight', 'bias')):
        weights[name] = rows_of(weights[name])
    state = plan_weights(weights).convert()
    expected = {
        'bbox_head.fc_cls': [*range(1, 81), 0],
        'bbox_head.fc_reg': list(range(4, 324)),
        'mask_head.conv_logits': list(range(1, 81)),
    }
    for name, rows in expected.items():
        for part in ('weight', 'bias'):
            weight = state[f'roi_head.{name}.{part}']
            assert weight.reshape(len(weight), -1)[:, 0].tolist() == rows, name


def test_first_stage_is_folded_where_they_froze_it(outlined: Callable) -> None:
    weights = outlined(FPN)['model']
    kept = plan_released_detector(weights, fold=False).convert()
    folded = plan_released_detector(weights).convert()
    changed = {name for name in kept if not torch.equal(kept[name], folded[name])}
    assert len(changed) == 20
    assert all(name.startswith('backbone.layer1.') for name in changed)
    for name in changed:
        old, new = kept[name].softmax(0), folded[name].softmax(0)
        assert torch.allclose(new, torch.stack([old[0] + old[2], old[1], torch.zeros(())]))
    # Whoever trained this network frozen can have it.
    scratch = outlined(MASK)['model']
    assert plan_released_detector(scratch, fold=True).folds
    with pytest.raises(UsageError, match='no bn to fold into in: leave out --first-stage'):
        plan_released_detector(outlined('mask_rcnn_r50_fpn_sn_8x1')['model'], fold=True)


def test_result_shares_no_memory_with_the_file(outlined: Callable) -> None:
    weights = outlined(FPN)['model']
    state = plan_weights(weights).convert()
    theirs = {weight.untyped_storage().data_ptr() for weight in weights.values()}
    assert not theirs & {weight.untyped_storage().data_ptr() for weight in state.values()}
    # Nor does it keep more than it needs.
    boxes = state['roi_head.bbox_head.fc_reg.weight']
    assert boxes.untyped_storage().nbytes() == boxes.numel() * boxes.element_size()


def other_classes(number: int) -> Callable[[dict], dict]:
    """Return a function that gives a detector this number of classes, the background included."""

    def change(weights: dict) -> dict:
        shapes = {'cls_score': (number, 1024), 'bbox_pred': (4 * number, 1024)}
        return weights | {
            f'Box_Outs.{name}.{part}': torch.ones(shape if part == 'weight' else shape[:1])
            for name, shape in shapes.items()
            for part in ('weight', 'bias')
        }

    return change


def deeper(weights: dict) -> dict:
    """Return the weights of a ResNet-101."""
    block = {name: weight for name, weight in weights.items() if '.res4.5.' in name}
    return weights | {
        name.replace('.res4.5.', f'.res4.{number}.'): weight
        for number in range(6, 23)
        for name, weight in block.items()
    }


FAULTS = {
    'lost': (
        lambda w: {k: v for k, v in w.items() if k != 'RPN.FPN_RPN_conv.bias'},
        r'lacks rpn_head\.rpn_conv\.bias\.',
    ),
    'lost a block': (
        lambda w: {k: v for k, v in w.items() if '.res4.5.' not in k},
        r'lacks backbone\.layer3\.5\.conv1\.weight, .* and \d+ more\.',
    ),
    'gained': (
        lambda w: w | {'Keypoint_Outs.classify.weight': torch.ones(17, 512, 4, 4)},
        r'also has Keypoint_Outs\.classify\.weight\.',
    ),
    '80 classes': (
        other_classes(80),
        r'the shape \(80, 1024\), not \(81, 1024\), of Box_Outs\.cls_score\.weight, and of '
        r'Box_Outs\.cls_score\.bias, Box_Outs\.bbox_pred\.weight, Box_Outs\.bbox_pred\.bias\.',
    ),
    '82 classes': (
        other_classes(82),
        r'the shape \(82, 1024\), not \(81, 1024\), of Box_Outs\.cls_score\.weight',
    ),
    'ResNet-101': (
        deeper,
        r'also has Conv_Body\.conv_body\.res4\.6\.conv1\.weight, .* and \d+ more\.',
    ),
    'another box head': (
        lambda w: w | {'Box_Head.convs.0.weight': torch.ones(256, 256, 3, 3)},
        r'also has Box_Head\.convs\.0\.weight\.',
    ),
    'flat γ': (
        lambda w: w | {'Conv_Body.conv_top.1.weight': torch.ones(256)},
        re.escape('has the shape (256,), not (1, 256, 1, 1), of Conv_Body.conv_top.1.weight.'),
    ),
    'another number of ratios': (
        lambda w: w | {'Conv_Body.conv_top.1.mean_weight': torch.ones(2)},
        re.escape('has the shape (2,), not (3,), of Conv_Body.conv_top.1.mean_weight.'),
    ),
    'twice': (
        lambda w: w | {'module.RPN.FPN_RPN_conv.bias': torch.ones(256)},
        r'also has module\.RPN\.FPN_RPN_conv\.bias\.',
    ),
    'diverged': (
        lambda w: w | {'Box_Head.fc2.bias': torch.full((1024,), float('nan'))},
        r'hold NaN, infinity or a negative variance: Box_Head\.fc2\.bias\.',
    ),
}


@pytest.mark.parametrize('fault', FAULTS)
def test_files_that_are_nearly_one_are_refused(fault: str, outlined: Callable) -> None:
    spoil, message = FAULTS[fault]
    with pytest.raises(UsageError, match=message):
        plan_weights(spoil(outlined(FPN)['model'])).check()


@pytest.mark.parametrize('classes', [80, 82])
def test_masks_of_other_classes_are_refused(classes: int, outlined: Callable) -> None:
    weights = outlined(MASK)['model']
    weights['Mask_Outs.classify.weight'] = torch.ones(classes, 256, 1, 1)
    with pytest.raises(UsageError, match=rf'\({classes}, 256, 1, 1\), not \(81, 256, 1, 1\)'):
        plan_weights(weights).check()


def test_c4_of_other_depth_is_refused(outlined: Callable) -> None:
    with pytest.raises(UsageError, match=r'C4 .* also has Conv_Body\.res4\.6\.conv1\.weight'):
        plan_weights(deeper(outlined(C4)['model'])).check()
