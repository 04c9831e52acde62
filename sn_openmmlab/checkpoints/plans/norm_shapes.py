"""The weights of a norm layer: in the toolboxes, and in the authors' files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

Shape = tuple[int, ...]

# By the number of control parameters of a layer, in the authors' order, which is our default too.
AUTHORS_SCOPES = {2: ('in', 'ln'), 3: ('in', 'ln', 'bn')}


@dataclass(frozen=True)
class NormKind:
    """A kind of norm layer.

    Attributes:
        abbreviation: What the toolboxes name its layers after, such as `sn` in `sn1`.
        parts: The length of each weight by its name; None stands for the number of channels.
            Counters are left out, since old files lack them.
    """

    abbreviation: str
    parts: Mapping[str, int | None]

    def shapes(self, layer: str, channels: int) -> dict[str, Shape]:
        """Return name → shape of the weights of a layer."""
        return {
            f'{layer}.{part}': (channels if length is None else length,)
            for part, length in self.parts.items()
        }


BATCH_NORM = NormKind('bn', dict.fromkeys(('weight', 'bias', 'running_mean', 'running_var')))


def switch_norm(controls: int) -> NormKind:
    """Return the SN layer with this number of control parameters, a key of `AUTHORS_SCOPES`."""
    parts = {'weight': None, 'bias': None, 'mean_weight': controls, 'var_weight': controls}
    if 'bn' in AUTHORS_SCOPES[controls]:
        parts |= {'running_mean': None, 'running_var': None}
    return NormKind('sn', parts)


def authors_shape(target: str, shape: Shape) -> Shape:
    """Return the shape in the authors' files of a weight.

    There γ and β are (1, C, 1, 1), and the running statistics are (1, C, 1).

    Args:
        target: The name of the weight in the toolboxes.
        shape: Its shape there.
    """
    if re.search(r'(^|\.)(sn\d?|downsample\.1)\.(weight|bias)$', target):
        return (1, *shape, 1, 1)
    return (1, *shape, 1) if target.endswith(('.running_mean', '.running_var')) else shape
