"""The authors' trained ADE20K segmenter, which they released as an encoder and a decoder."""

from collections.abc import Mapping

from torch import Tensor

from sn_openmmlab.checkpoints.names import few
from sn_openmmlab.checkpoints.plans.layouts import bare, expanded
from sn_openmmlab.checkpoints.plans.plan import Plan, make_plan
from sn_openmmlab.checkpoints.plans.resnet import Shape, norm_shapes, resnet_shapes
from sn_openmmlab.checkpoints.plans.sn_resnet import plan_backbone
from sn_openmmlab.errors import UsageError

# What its images have to be, in the words of the toolboxes' data_preprocessor.
PREPROCESSING = {
    'mean': [102.9801, 115.9465, 122.7717],
    'std': [1.0, 1.0, 1.0],
    'bgr_to_rgb': False,
}
_CLASSES = 150
# Their name → ours and the channels that go in.
_HEADS = {'': ('decode_head', 2048), '_deepsup': ('auxiliary_head', 1024)}


def plan_encoder(weights: Mapping[str, Tensor]) -> Plan:
    """Return what becomes of the encoder in the paper's DeepLab.

    Raises:
        UsageError: it is something else.
    """
    plan = plan_backbone(weights)
    if plan.dropped:
        raise UsageError(
            f'it has a classifier, {few(plan.dropped)}: it is a backbone of ImageNet, not the '
            'encoder of the segmenter.'
        )
    if plan.layout != 'imagenet' or plan.expected != resnet_shapes(50, 3):
        raise UsageError(
            "the encoder of the authors' ADE20K segmenter is a ResNet-50 v1 with SN of in, ln, bn, "
            f'but this looks like {plan.title}.'
        )
    return plan.under('backbone.')


def plan_decoder(weights: Mapping[str, Tensor]) -> Plan:
    """Return what becomes of the decoder in the paper's DeepLab."""
    expected: dict[str, Shape] = {}
    names: dict[str, str] = {}
    for suffix, (head, channels) in _HEADS.items():
        expected |= _head_shapes(head, channels)
        names |= {
            f'cbr{suffix}.0': f'{head}.convs.0.conv',
            f'cbr{suffix}.1': f'{head}.convs.0.sn',
            f'conv_last{suffix}': f'{head}.conv_seg',
        }
    targets = {}
    for name in weights:
        module, _, part = bare(name).rpartition('.')
        targets[name] = f'{names[module]}.{part}' if module in names else None
    title = "the decoder of the authors' ADE20K segmenter, with deep supervision"
    return make_plan('ade20k', title, weights, targets, expected, expanded)


def _head_shapes(head: str, channels: int) -> dict[str, Shape]:
    return {
        f'{head}.convs.0.conv.weight': (512, channels, 3, 3),
        **norm_shapes(f'{head}.convs.0.sn', 512, 3),
        f'{head}.conv_seg.weight': (_CLASSES, 512, 1, 1),
        f'{head}.conv_seg.bias': (_CLASSES,),
    }
