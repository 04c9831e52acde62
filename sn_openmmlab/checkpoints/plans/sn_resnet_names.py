"""How files name the weights of a ResNet with SN: the authors' releases, and the toolboxes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from sn_openmmlab.checkpoints.names import few
from sn_openmmlab.checkpoints.plans.layout import Layout
from sn_openmmlab.checkpoints.plans.norm_shapes import Shape, authors_shape, switch_norm
from sn_openmmlab.checkpoints.plans.resnet import resnet_shapes
from sn_openmmlab.checkpoints.weight_names import bare
from sn_openmmlab.errors import UsageError

IMAGENET = Layout('imagenet', of_authors=True)
DETECTION_FPN = Layout('detection-fpn', of_authors=True)
DETECTION_C4 = Layout('detection-c4', of_authors=True)
TOOLBOX = Layout('toolbox')

_CONTROLS = {name for name in resnet_shapes(101, switch_norm(3)) if name.endswith('.mean_weight')}


@dataclass(frozen=True)
class Naming:
    """How files of one kind name and shape the weights of a ResNet.

    Attributes:
        layout: The layout of these files.
        title: How messages go on after what the file holds.
        prefix: What every name of the network starts with.
        drops: What the names of weights start with that a backbone does not need.
        detectron: Whether the stages have Detectron's names.
        flat: Whether γ, β and the running statistics have one dimension, as in the toolboxes.
    """

    layout: Layout
    title: str
    prefix: str = ''
    drops: tuple[str, ...] = ('fc.',)
    detectron: bool = False
    flat: bool = False

    def target(self, name: str) -> str | None:
        """Return the toolboxes' name of a weight, or None if it lacks the prefix."""
        name = bare(name)
        if not name.startswith(self.prefix):
            return None
        name = name.removeprefix(self.prefix)
        return from_detectron(name) if self.detectron else name

    def is_dropped(self, name: str) -> bool:
        """Return whether a backbone does not need a weight of this name."""
        return bare(name).startswith(self.drops)

    def source_shape(self, target: str, shape: Shape) -> Shape:
        """Return the shape in the file of a weight that has `shape` in the toolboxes."""
        return shape if self.flat else authors_shape(target, shape)


_NAMINGS = (
    Naming(IMAGENET, "in the layout of the authors' ImageNet and segmentation releases"),
    Naming(
        DETECTION_FPN,
        "in the layout of the authors' detection release for FPN",
        prefix='Conv_Body.conv_body.',
        drops=('Conv_Body.conv_body.classifier.',),
        detectron=True,
    ),
    Naming(
        DETECTION_C4,
        "in the layout of the authors' detection release for C4",
        prefix='Conv_Body.',
        drops=('Conv_Body.classifier.',),
        detectron=True,
    ),
    Naming(TOOLBOX, "already in the toolboxes' layout", flat=True),
    Naming(
        TOOLBOX,
        "already in the toolboxes' layout",
        prefix='backbone.',
        drops=('head.fc.', 'decode_head.', 'auxiliary_head.'),
        flat=True,
    ),
)


def find_naming(weights: Mapping[str, Tensor]) -> Naming:
    """Return the naming that most of the control parameters have.

    Raises:
        UsageError: No control parameter has the name of one in a ResNet.
    """
    names = [bare(name) for name in weights]
    flat = _is_flat(weights)

    def rank(naming: Naming) -> tuple[int, bool]:
        return sum(naming.target(name) in _CONTROLS for name in names), naming.flat == flat

    naming = max(_NAMINGS, key=rank)
    if rank(naming)[0] == 0:
        raise UsageError(
            'it holds no ResNet with Switchable Normalization in a known layout, which would have '
            f'a weight sn1.mean_weight, but {few(weights)}.'
        )
    return naming


def _is_flat(weights: Mapping[str, Tensor]) -> bool:
    dims = [weight.dim() for name, weight in weights.items() if re.search(r'sn\d\.weight$', name)]
    return 2 * dims.count(1) > len(dims)


def from_detectron(name: str) -> str:
    """Return the toolboxes' name of a weight of a ResNet that has Detectron's."""
    name = re.sub(r'^res([2-5])\.', lambda found: f'layer{int(found[1]) - 1}.', name)
    return re.sub(r'^res1\.', '', name)
