"""The authors' trained detectors, which are recognised and refused."""

import re
from collections.abc import Iterable, Mapping
from typing import NoReturn

from torch import Tensor

from sn_openmmlab.checkpoints.names import few
from sn_openmmlab.checkpoints.weight_names import bare
from sn_openmmlab.errors import UsageError

_PART = re.compile(r'(RPN|Box_Head|Box_Outs|Mask_Head|Mask_Outs|Keypoint_\w+)\.')


def is_released_detector(weights: Iterable[str]) -> bool:
    """Return whether these are the names of weights of such a detector."""
    return bool(_parts(weights))


def refuse_released_detector(weights: Mapping[str, Tensor]) -> NoReturn:
    """Raise UsageError."""
    raise UsageError(
        f"it is a detector of the authors' detection release, as {few(_parts(weights))} show. "
        'Detectors cannot be converted yet: convert the ImageNet backbone of that release.'
    )


def _parts(weights: Iterable[str]) -> list[str]:
    return [name for name in map(bare, weights) if _PART.match(name)]
