"""The layouts of files that hold a ResNet with Switchable Normalization, told by their names."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torch import Tensor

from sn_openmmlab.checkpoints.names import few, shown
from sn_openmmlab.checkpoints.plans.resnet import Shape, resnet_shapes
from sn_openmmlab.errors import UsageError

_DETECTOR = re.compile(r'(RPN|Box_Head|Box_Outs|Mask_Head|Mask_Outs|Keypoint_\w+)\.')
_CONTROLS = {name for name in resnet_shapes(101, 3) if name.endswith('.mean_weight')}


@dataclass(frozen=True)
class Layout:
    """How one kind of file names and shapes the weights of a ResNet.

    Attributes:
        name: for programs.
        title: for people, after what the file holds.
        prefix: what every name of the network starts with.
        drops: what the names start with that a backbone does not take.
        detectron: whether the stages are named as Detectron names them.
        flat: whether γ, β and the running statistics have one dimension, as in the toolboxes.
    """

    name: str
    title: str
    prefix: str = ''
    drops: tuple[str, ...] = ('fc.',)
    detectron: bool = False
    flat: bool = False

    def target(self, name: str) -> str | None:
        """Return what the toolboxes call a weight of this name, or None without the prefix."""
        name = bare(name)
        if not name.startswith(self.prefix):
            return None
        name = name.removeprefix(self.prefix)
        return _from_detectron(name) if self.detectron else name

    def is_dropped(self, name: str) -> bool:
        """Whether a backbone does not take a weight of this name."""
        return bare(name).startswith(self.drops)

    def source_shape(self, target: str, shape: Shape) -> Shape:
        """Return the shape in the file of the weight that has ``shape`` in the toolboxes."""
        return shape if self.flat else expanded(target, shape)


LAYOUTS = (
    Layout('imagenet', "in the layout of the authors' ImageNet and segmentation releases"),
    Layout(
        'detection-fpn',
        "in the layout of the authors' detection release for FPN",
        prefix='Conv_Body.conv_body.',
        drops=('Conv_Body.conv_body.classifier.',),
        detectron=True,
    ),
    Layout(
        'detection-c4',
        "in the layout of the authors' detection release for C4",
        prefix='Conv_Body.',
        drops=('Conv_Body.classifier.',),
        detectron=True,
    ),
    Layout('toolbox', "already in the toolboxes' layout", flat=True),
    Layout(
        'toolbox',
        "already in the toolboxes' layout",
        prefix='backbone.',
        drops=('head.fc.', 'decode_head.', 'auxiliary_head.'),
        flat=True,
    ),
)


def expanded(target: str, shape: Shape) -> Shape:
    """Return the shape in the authors' files of the weight that has ``shape`` in the toolboxes."""
    if re.search(r'(^|\.)(sn\d?|downsample\.1)\.(weight|bias)$', target):
        return (1, *shape, 1, 1)
    return (1, *shape, 1) if target.endswith(('.running_mean', '.running_var')) else shape


def bare(name: str) -> str:
    """Return ``name`` without the ``module.`` that parallel training puts before it."""
    return re.sub(r'^(module\.)+', '', name)


def bare_names(names: Iterable[str]) -> dict[str, str]:
    """Return the names by what they are without ``module.``.

    Raises:
        UsageError: two of them are the same then.
    """
    found: dict[str, str] = {}
    for name in names:
        other = found.setdefault(bare(name), name)
        if other != name:
            raise UsageError(
                f'it has both {shown(other)} and {shown(name)}, which are one weight: save one of '
                'them alone.'
            )
    return found


def recognise(weights: Mapping[str, Tensor]) -> Layout:
    """Return the layout whose names most of the control parameters have.

    Raises:
        UsageError: it is none of a backbone with Switchable Normalization.
    """
    names = [bare(name) for name in weights]
    detector = [name for name in names if _DETECTOR.match(name)]
    if detector:
        raise UsageError(
            f"it is a detector of the authors' detection release, as {few(detector)} show, and "
            'those cannot be converted yet: convert the ImageNet backbone of that release.'
        )
    if any(name.startswith(('cbr.', 'cbr_deepsup.')) for name in names):
        raise UsageError(
            "it is the decoder of the authors' ADE20K segmenter, which is converted together with "
            'its encoder: give ENCODER DECODER OUT.'
        )
    flat = _is_flat(weights)

    def rank(layout: Layout) -> tuple[int, bool]:
        return sum(layout.target(name) in _CONTROLS for name in names), layout.flat == flat

    layout = max(LAYOUTS, key=rank)
    if rank(layout)[0] == 0:
        raise UsageError(
            'it holds no ResNet with Switchable Normalization in a known layout, where one weight '
            f'would be sn1.mean_weight, but {few(weights)}.'
        )
    return layout


def _is_flat(weights: Mapping[str, Tensor]) -> bool:
    dims = [weight.dim() for name, weight in weights.items() if re.search(r'sn\d\.weight$', name)]
    return 2 * dims.count(1) > len(dims)


def _from_detectron(name: str) -> str:
    name = re.sub(r'^res([2-5])\.', lambda found: f'layer{int(found[1]) - 1}.', name)
    return re.sub(r'^res1\.', '', name)
