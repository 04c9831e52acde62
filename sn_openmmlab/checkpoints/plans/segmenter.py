"""The authors' trained ADE20K segmenter, which they released as an encoder and a decoder."""

from collections.abc import Iterable, Mapping
from typing import NoReturn

from torch import Tensor

from sn_openmmlab.checkpoints.names import few
from sn_openmmlab.checkpoints.plans.layout import Layout
from sn_openmmlab.checkpoints.plans.norm_shapes import Shape, authors_shape, switch_norm
from sn_openmmlab.checkpoints.plans.plan import Plan, make_plan
from sn_openmmlab.checkpoints.plans.resnet import resnet_shapes
from sn_openmmlab.checkpoints.plans.sn_resnet import plan_sn_resnet
from sn_openmmlab.checkpoints.plans.sn_resnet_names import IMAGENET
from sn_openmmlab.checkpoints.weight_names import bare
from sn_openmmlab.errors import UsageError

ADE20K = Layout(
    'ade20k',
    of_authors=True,
    config='segmentation/deeplab/deeplab_r50b-d8_sn_8xb2-100k_ade20k-450x450.py',
    model='the DeepLab of the paper',
)
# The images that it was trained on, in the words of the toolboxes' data_preprocessor.
PREPROCESSING = {
    'mean': [102.9801, 115.9465, 122.7717],
    'std': [1.0, 1.0, 1.0],
    'bgr_to_rgb': False,
}
_CLASSES = 150
# The authors' suffix → the toolboxes' name of the head, and its input channels.
_HEADS = {'': ('decode_head', 2048), '_deepsup': ('auxiliary_head', 1024)}


def is_decoder(weights: Iterable[str]) -> bool:
    """Return whether these are the names of weights of the decoder."""
    return any(bare(name).startswith(('cbr.', 'cbr_deepsup.')) for name in weights)


def refuse_decoder(_: Mapping[str, Tensor]) -> NoReturn:
    """Raise UsageError, since the decoder is of no use without its encoder."""
    raise UsageError(
        "it is the decoder of the authors' ADE20K segmenter, which is converted together with its "
        'encoder: give ENCODER DECODER OUT.'
    )


def plan_encoder(weights: Mapping[str, Tensor]) -> Plan:
    """Plan what the encoder becomes in the paper's DeepLab.

    Raises:
        UsageError: The weights are not those of the encoder.
    """
    if is_decoder(weights):
        refuse_decoder(weights)
    plan = plan_sn_resnet(weights)
    if plan.dropped:
        raise UsageError(
            f'it has a classifier, {few(plan.dropped)}: it is a backbone of ImageNet, not the '
            'encoder of the segmenter.'
        )
    if plan.layout != IMAGENET or plan.expected != resnet_shapes(50, switch_norm(3)):
        raise UsageError(
            "the encoder of the authors' ADE20K segmenter is a ResNet-50 v1 with SN of in, ln, bn, "
            f'but this looks like {plan.title}.'
        )
    return plan.under('backbone.')


def plan_decoder(weights: Mapping[str, Tensor]) -> Plan:
    """Plan what the decoder becomes in the paper's DeepLab."""
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
    return make_plan(ADE20K, title, weights, targets, expected, authors_shape)


def _head_shapes(head: str, channels: int) -> dict[str, Shape]:
    return {
        f'{head}.convs.0.conv.weight': (512, channels, 3, 3),
        **switch_norm(3).shapes(f'{head}.convs.0.sn', 512),
        f'{head}.conv_seg.weight': (_CLASSES, 512, 1, 1),
        f'{head}.conv_seg.bias': (_CLASSES,),
    }
