"""The weights of the authors' detectors as MMDetection has them, and their order of classes."""

from torch import Tensor

from sn_openmmlab.checkpoints.plans.detector_releases import Release
from sn_openmmlab.checkpoints.plans.norm_shapes import (
    NormKind,
    Shape,
    authors_shape,
    switch_norm,
)
from sn_openmmlab.checkpoints.plans.resnet import resnet_shapes

_CLASSES = 80
_STAGES = (256, 512, 1024, 2048)
_WIDTH, _FC = 256, 1024
_BOXES, _MASKS = 'roi_head.bbox_head', 'roi_head.mask_head'
# How many rows of background come before those of the classes.
_BACKGROUND = {
    f'{_BOXES}.fc_reg': 4,
    f'{_MASKS}.conv_logits': 1,
}


def detector_shapes(release: Release) -> dict[str, Shape]:
    """Return name → shape of each weight but the counters of the norm layers."""
    norm = switch_norm(release.controls)
    network = resnet_shapes(50, norm)
    if not release.fpn:
        return {
            **{_c4_part(name): shape for name, shape in network.items()},
            **_rpn(1024, anchors=15),
            **_outputs(_STAGES[-1]),
        }
    shapes = {f'backbone.{name}': shape for name, shape in network.items()}
    for i, channels in enumerate(_STAGES):
        shapes |= _block(f'neck.lateral_convs.{i}', channels, 1, norm)
        shapes |= _block(f'neck.fpn_convs.{i}', _WIDTH, 3, norm)
    shapes |= _rpn(_WIDTH, anchors=3)
    if release.convs:
        shapes |= _blocks(f'{_BOXES}.shared_convs', norm)
    else:
        shapes |= _layer(f'{_BOXES}.shared_fcs.1', (_FC, _FC))
    shapes |= _layer(f'{_BOXES}.shared_fcs.0', (_FC, _WIDTH * 7 * 7))
    shapes |= _outputs(_FC)
    if release.masks:
        shapes |= _blocks(f'{_MASKS}.convs', norm)
        shapes |= _layer(f'{_MASKS}.upsample', (_WIDTH, _WIDTH, 2, 2))
        shapes |= _layer(f'{_MASKS}.conv_logits', (_CLASSES, _WIDTH, 1, 1))
    return shapes


def released_shape(target: str, shape: Shape) -> Shape:
    """Return the shape in the authors' file of a weight that has `shape` in MMDetection."""
    rows = _BACKGROUND.get(target.rpartition('.')[0], 0)
    return (shape[0] + rows, *shape[1:]) if rows else authors_shape(target, shape)


def in_class_order(target: str, weight: Tensor) -> Tensor:
    """Return a weight with its rows in MMDetection's order of classes.

    The authors have the background first. MMDetection has it last in the scores, and has no boxes
    and masks of it.
    """
    module = target.rpartition('.')[0]
    if module == f'{_BOXES}.fc_cls':
        return weight.roll(-1, 0)
    return weight[_BACKGROUND.get(module, 0) :] if module in _BACKGROUND else weight


def _c4_part(name: str) -> str:
    return f'{"roi_head.shared_head" if name.startswith("layer4.") else "backbone"}.{name}'


def _block(name: str, channels: int, kernel: int, norm: NormKind) -> dict[str, Shape]:
    """Return the shapes of a convolution and its norm."""
    convolution = {f'{name}.conv.weight': (_WIDTH, channels, kernel, kernel)}
    return convolution | norm.shapes(f'{name}.sn', _WIDTH)


def _blocks(name: str, norm: NormKind) -> dict[str, Shape]:
    shapes = {}
    for i in range(4):
        shapes |= _block(f'{name}.{i}', _WIDTH, 3, norm)
    return shapes


def _layer(name: str, shape: Shape) -> dict[str, Shape]:
    """Return the shapes of a layer with a bias."""
    return {f'{name}.weight': shape, f'{name}.bias': shape[:1]}


def _rpn(channels: int, anchors: int) -> dict[str, Shape]:
    return {
        **_layer('rpn_head.rpn_conv', (channels, channels, 3, 3)),
        **_layer('rpn_head.rpn_cls', (anchors, channels, 1, 1)),
        **_layer('rpn_head.rpn_reg', (4 * anchors, channels, 1, 1)),
    }


def _outputs(channels: int) -> dict[str, Shape]:
    return {
        **_layer(f'{_BOXES}.fc_cls', (_CLASSES + 1, channels)),
        **_layer(f'{_BOXES}.fc_reg', (4 * _CLASSES, channels)),
    }
