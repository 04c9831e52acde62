"""From the authors' files, or one with BatchNorm, to one checkpoint for the toolboxes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor

from sn_openmmlab.checkpoints.files.provenance import provenance, recorded, recorded_scopes
from sn_openmmlab.checkpoints.files.safe_loading import read_checkpoint
from sn_openmmlab.checkpoints.files.weights import find_weights
from sn_openmmlab.checkpoints.names import about
from sn_openmmlab.checkpoints.plans.batch_norm import (
    BATCH_NORM_LAYOUTS,
    BatchNormPlan,
    has_batch_norm,
    plan_batch_norm,
)
from sn_openmmlab.checkpoints.plans.plan import Plan
from sn_openmmlab.checkpoints.plans.resnet import SCOPES
from sn_openmmlab.checkpoints.plans.segmenter import PREPROCESSING, plan_decoder, plan_encoder
from sn_openmmlab.checkpoints.plans.sn_resnet import keep_classifier, plan_backbone
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.from_batch_norm import BATCH_RATIO


@dataclass(frozen=True)
class PlannedFile:
    """A file that was read, what becomes of its weights, and the scopes of its λ, where known."""

    path: str
    plan: Plan
    scopes: Sequence[str] | None

    def check(self) -> None:
        """Raise UsageError, which names file and weights, unless everything fits."""
        with about(self.path):
            self.plan.check()


def plan_files(
    files: Sequence[str], classifier: bool = False, batch_ratio: float | None = None
) -> list[PlannedFile]:
    """Read a backbone, or the encoder and the decoder of a segmenter, and plan the conversion.

    Args:
        files: one or two, in that order.
        classifier: whether to keep that of the one.
        batch_ratio: of the one, which has BatchNorm then; None where it may have, for the usual.

    Raises:
        UsageError: a file cannot be read, or its layout is not known, or it was converted from
            BatchNorm before; there is a ratio for a file without BatchNorm.
    """
    planners = [partial(_plan_network, classifier=classifier, batch_ratio=batch_ratio)]
    if len(files) == 2:
        planners = [plan_encoder, plan_decoder]
    planned = []
    for path, plan in zip(files, planners, strict=True):
        checkpoint = read_checkpoint(path)
        with about(path):
            if recorded(checkpoint, 'layout') in BATCH_NORM_LAYOUTS:
                raise UsageError('it was converted from BatchNorm already: use it as it is.')
            made = plan(find_weights(checkpoint))
        planned.append(PlannedFile(path, made, _scopes(made, recorded_scopes(checkpoint))))
    return planned


def converted_checkpoint(planned: Sequence[PlannedFile]) -> dict[str, Any]:
    """Carry out the plans, and return the checkpoint to save.

    Raises:
        UsageError: weights are missing, left over or of another shape.
    """
    for file in planned:
        file.check()
    last = planned[-1]
    meta = provenance([file.path for file in planned], last.plan.layout, last.scopes)
    if isinstance(planned[0].plan, BatchNormPlan):
        meta['batch_ratio'] = planned[0].plan.batch_ratio
    if len(planned) == 2:
        meta['data_preprocessor'] = PREPROCESSING
    state = {name: weight for file in planned for name, weight in file.plan.convert().items()}
    return {'state_dict': state, 'meta': meta}


def _scopes(plan: Plan, known: Sequence[str] | None) -> Sequence[str] | None:
    """The order of the authors and of what comes from BatchNorm; others are what they say."""
    if isinstance(plan, BatchNormPlan):
        return SCOPES[3]
    controls = [shape for name, shape in plan.expected.items() if name.endswith('.mean_weight')]
    return known if plan.layout == 'toolbox' else SCOPES[controls[0][0]]


def _plan_network(
    weights: Mapping[str, Tensor], classifier: bool, batch_ratio: float | None
) -> Plan:
    if has_batch_norm(weights):
        plan = plan_batch_norm(weights, BATCH_RATIO if batch_ratio is None else batch_ratio)
    elif batch_ratio is None:
        plan = plan_backbone(weights)
    else:
        raise UsageError('it has no BatchNorm to give a ratio to: leave out --batch-ratio.')
    return keep_classifier(plan) if classifier else plan
