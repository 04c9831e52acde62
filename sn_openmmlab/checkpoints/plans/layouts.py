"""The table of all layouts that can be converted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from sn_openmmlab.checkpoints.files.provenance import recorded
from sn_openmmlab.checkpoints.norm_names import has_batch_norm
from sn_openmmlab.checkpoints.plans.batch_norm import BN_NETWORK, BN_RESNET, plan_batch_norm
from sn_openmmlab.checkpoints.plans.detector_releases import DETECTORS
from sn_openmmlab.checkpoints.plans.layout import Layout
from sn_openmmlab.checkpoints.plans.plan import Plan
from sn_openmmlab.checkpoints.plans.released_detector import (
    is_released_detector,
    plan_released_detector,
)
from sn_openmmlab.checkpoints.plans.segmenter import ADE20K, is_decoder, refuse_decoder
from sn_openmmlab.checkpoints.plans.sn_resnet import plan_sn_resnet
from sn_openmmlab.checkpoints.plans.sn_resnet_names import (
    DETECTION_C4,
    DETECTION_FPN,
    IMAGENET,
    TOOLBOX,
)

Weights = Mapping[str, Tensor]


@dataclass(frozen=True)
class Family:
    """Layouts that share their code.

    Attributes:
        layouts: The layouts.
        recognises: Returns whether weights have one of them.
        plan: Returns the plan of the conversion, or raises UsageError.
    """

    layouts: tuple[Layout, ...]
    recognises: Callable[[Weights], bool]
    plan: Callable[[Weights], Plan]


# The first that recognises a file plans its conversion. The last one takes every file, and says
# what it lacks.
FAMILIES = (
    Family((BN_NETWORK, BN_RESNET), has_batch_norm, plan_batch_norm),
    Family(
        DETECTORS,
        is_released_detector,
        plan_released_detector,
    ),
    Family((ADE20K,), is_decoder, refuse_decoder),
    Family((IMAGENET, DETECTION_FPN, DETECTION_C4, TOOLBOX), lambda _: True, plan_sn_resnet),
)
LAYOUTS = tuple(layout for family in FAMILIES for layout in family.layouts)


def plan_weights(weights: Weights) -> Plan:
    """Plan the conversion of a file, whose layout the names of its weights tell.

    Raises:
        UsageError: The layout is not known or cannot be converted.
    """
    return next(family for family in FAMILIES if family.recognises(weights)).plan(weights)


def to_toolbox(weights: Weights) -> dict[str, Tensor]:
    """Return weights by the names that MMDetection and its siblings give them.

    The weights may have any layout in `LAYOUTS`. The result shares no memory with them.

    Raises:
        UsageError: The layout is not known, or weights are missing, of other shapes or too many.
            The message names the weights but not the file.
    """
    plan = plan_weights(weights)
    plan.check()
    return plan.convert()


def recorded_layout(checkpoint: Mapping[str, Any]) -> Layout | None:
    """Return the layout that a converted checkpoint had before, or None for other checkpoints."""
    name = recorded(checkpoint, 'layout')
    return next((layout for layout in LAYOUTS if layout.name == name), None)
