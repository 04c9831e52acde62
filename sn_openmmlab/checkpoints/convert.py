"""From the authors' files, or a file with BatchNorm, to one checkpoint for the toolboxes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor

from sn_openmmlab.checkpoints.files.provenance import provenance, recorded_scopes
from sn_openmmlab.checkpoints.files.safe_loading import read_checkpoint
from sn_openmmlab.checkpoints.files.weights import find_weights
from sn_openmmlab.checkpoints.names import about
from sn_openmmlab.checkpoints.norm_names import has_batch_norm
from sn_openmmlab.checkpoints.plans.batch_norm import BatchNormPlan, plan_batch_norm
from sn_openmmlab.checkpoints.plans.classifier import keep_classifier
from sn_openmmlab.checkpoints.plans.detector_releases import DETECTORS
from sn_openmmlab.checkpoints.plans.layouts import plan_weights, recorded_layout
from sn_openmmlab.checkpoints.plans.norm_shapes import AUTHORS_SCOPES
from sn_openmmlab.checkpoints.plans.plan import Plan
from sn_openmmlab.checkpoints.plans.released_detector import (
    DetectorPlan,
    is_released_detector,
    plan_released_detector,
)
from sn_openmmlab.checkpoints.plans.segmenter import PREPROCESSING, plan_decoder, plan_encoder
from sn_openmmlab.checkpoints.plans.sn_resnet_names import TOOLBOX
from sn_openmmlab.errors import UsageError


@dataclass(frozen=True)
class PlannedFile:
    """A file that was read, and the plan of its conversion.

    Attributes:
        path: The file.
        plan: What becomes of its weights.
        scopes: The scopes of its λ in their order, or None if they are not known.
    """

    path: str
    plan: Plan
    scopes: Sequence[str] | None

    def check(self) -> None:
        """Raise UsageError, which names the file and the weights, unless everything fits."""
        with about(self.path):
            self.plan.check()


def plan_files(
    files: Sequence[str],
    classifier: bool = False,
    batch_ratio: float | None = None,
    fold: bool | None = None,
) -> list[PlannedFile]:
    """Read a network, or the encoder and the decoder of a segmenter, and plan the conversion.

    Args:
        files: One file, or encoder and decoder.
        classifier: Whether to keep the classifier of the one file.
        batch_ratio: The importance ratio at which `'bn'` starts, for a file with BatchNorm. If
            None, the usual one.
        fold: Whether to fold `'bn'` into `'in'` in the first stage of a detector of the authors. If
            None, it is done where they froze that stage.

    Raises:
        UsageError: A file cannot be read, has no known layout, or was converted from BatchNorm or
            from a detector before; there is a ratio for a file without BatchNorm; or `fold` is
            given for a file without a detector of the authors, or without `'bn'`.
    """
    options = dict(classifier=classifier, batch_ratio=batch_ratio, fold=fold)
    planners = [partial(_plan_network, **options)]
    if len(files) == 2:
        planners = [plan_encoder, plan_decoder]
    planned = []
    for path, plan in zip(files, planners, strict=True):
        checkpoint = read_checkpoint(path)
        with about(path):
            layout = recorded_layout(checkpoint)
            if layout and layout.from_batch_norm:
                raise UsageError('it was already converted from BatchNorm: use it as it is.')
            if layout in DETECTORS:
                raise UsageError(f'it was already converted from {layout.model}: use it as it is.')
            made = plan(find_weights(checkpoint))
        planned.append(PlannedFile(path, made, _scopes(made, recorded_scopes(checkpoint))))
    return planned


def converted_checkpoint(planned: Sequence[PlannedFile]) -> dict[str, Any]:
    """Carry out the plans, and return the checkpoint to save.

    Raises:
        UsageError: Weights are missing, left over or of another shape.
    """
    for file in planned:
        file.check()
    last = planned[-1]
    meta = provenance([file.path for file in planned], last.plan.layout.name, last.scopes)
    if isinstance(planned[0].plan, BatchNormPlan):
        meta['batch_ratio'] = planned[0].plan.batch_ratio
    if len(planned) == 2:
        meta['data_preprocessor'] = PREPROCESSING
    if isinstance(last.plan, DetectorPlan):
        meta['data_preprocessor'] = dict(last.plan.release.images)
        meta['first_stage'] = 'bn folded into in' if last.plan.folds else 'as released'
    state = {name: weight for file in planned for name, weight in file.plan.convert().items()}
    return {'state_dict': state, 'meta': meta}


def _scopes(plan: Plan, recorded: Sequence[str] | None) -> Sequence[str] | None:
    """Return the scopes of λ: the authors' order, and ours for BatchNorm; else what is recorded."""
    if plan.layout.from_batch_norm:
        return AUTHORS_SCOPES[3]
    if plan.layout == TOOLBOX:
        return recorded
    controls = [shape for name, shape in plan.expected.items() if name.endswith('.mean_weight')]
    return AUTHORS_SCOPES[controls[0][0]]


def _plan_network(
    weights: Mapping[str, Tensor], classifier: bool, batch_ratio: float | None, fold: bool | None
) -> Plan:
    if batch_ratio is not None and not has_batch_norm(weights):
        raise UsageError('it has no BatchNorm to give a ratio to: leave out --batch-ratio.')
    if fold is not None and not is_released_detector(weights):
        raise UsageError('it is no trained detector of the authors: leave out --first-stage.')
    if batch_ratio is not None:
        plan = plan_batch_norm(weights, batch_ratio)
    elif fold is not None:
        plan = plan_released_detector(weights, fold)
    else:
        plan = plan_weights(weights)
    return keep_classifier(plan) if classifier else plan
