"""The authors' trained detectors."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torch import Tensor

from sn_openmmlab.checkpoints.plans.detector_names import detector_target
from sn_openmmlab.checkpoints.plans.detector_releases import Release, find_release
from sn_openmmlab.checkpoints.plans.detector_shapes import (
    detector_shapes,
    in_class_order,
    released_shape,
)
from sn_openmmlab.checkpoints.plans.frozen_stage import fold_batch_norm, is_folded
from sn_openmmlab.checkpoints.plans.plan import Plan, make_plan
from sn_openmmlab.checkpoints.weight_names import bare
from sn_openmmlab.errors import UsageError

_PART = re.compile(r'(RPN|Box_Head|Box_Outs|Mask_Head|Mask_Outs|Keypoint_\w+)\.')


@dataclass(frozen=True)
class DetectorPlan(Plan):
    """The conversion of a detector before it is carried out.

    Attributes:
        release: Which detector it is.
        folds: Whether λ of `bn` is folded into that of `in` in the first stage.
    """

    release: Release
    folds: bool

    def weight(self, source: str, target: str) -> Tensor:
        """Return a weight of the model, from the weight `source` of the file."""
        weight = in_class_order(target, self.weights[source].detach())
        return fold_batch_norm(weight) if self.is_folded(target) else self.fitted(weight, target)

    def is_folded(self, target: str) -> bool:
        """Return whether a weight of the model is a λ that is folded."""
        return self.folds and is_folded(target)


def is_released_detector(weights: Iterable[str]) -> bool:
    """Return whether these are the names of weights of such a detector."""
    return any(_PART.match(bare(name)) for name in weights)


def plan_released_detector(weights: Mapping[str, Tensor], fold: bool | None = None) -> DetectorPlan:
    """Plan what a trained detector of the authors becomes in MMDetection.

    Args:
        weights: The weights by name.
        fold: Whether to fold `bn` into `in` in the first stage. If None, it is done where the
            authors froze that stage.

    Raises:
        UsageError: There is no `bn` to fold.
    """
    release = find_release(weights)
    if fold and release.controls == 2:
        raise UsageError('its SN has no bn to fold into in: leave out --first-stage.')
    plan = make_plan(
        release.layout,
        release.layout.model,
        weights,
        {name: detector_target(name, release.fpn) for name in weights},
        detector_shapes(release),
        released_shape,
    )
    return DetectorPlan(
        **vars(plan), release=release, folds=release.frozen_bn if fold is None else fold
    )
