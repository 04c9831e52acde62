"""The authors' ImageNet ResNets, from any layout that they were released in."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from sn_openmmlab.checkpoints.files.weights import find_weights
from sn_openmmlab.checkpoints.names import shown
from sn_openmmlab.checkpoints.plans.layouts import recognise
from sn_openmmlab.checkpoints.plans.plan import Plan, make_plan
from sn_openmmlab.checkpoints.plans.resnet import SCOPES, Shape, depth_of, resnet_shapes
from sn_openmmlab.errors import UsageError

_COUNTER = 'num_batches_tracked'


@dataclass(frozen=True)
class Converted:
    """Weights for the toolboxes' ResNet.

    Attributes:
        layout: the name of the layout that was recognised.
        state_dict: the weights, by the names that they have in a ResNet.
        renamed: name in the file, name in the ResNet and shape there, of each weight.
        dropped: the names in the file that a backbone does not take, as its classifier's.
    """

    layout: str
    state_dict: dict[str, Tensor]
    renamed: list[tuple[str, str, Shape]]
    dropped: list[str]


def to_toolbox(checkpoint: Mapping[str, Any]) -> Converted:
    """Return the ResNet of a checkpoint as MMDetection and its siblings name it.

    The checkpoint is one of the authors' ImageNet ResNet-50 or ResNet-101 v1 in any layout that
    they were released in, or one in the toolboxes' own. The result shares no memory with it.

    Raises:
        UsageError: it is none of these, or weights are missing, of other shapes or too many; the
            message names them, and does not name the file.
    """
    plan = plan_backbone(find_weights(checkpoint))
    plan.check()
    renamed = [(source, target, plan.expected[target]) for source, target in plan.pairs.items()]
    return Converted(plan.layout, plan.convert(), renamed, plan.dropped)


def plan_backbone(weights: Mapping[str, Tensor]) -> Plan:
    """Return what becomes of weights that hold a ResNet.

    Raises:
        UsageError: they are in no known layout, or of a network that no toolbox has.
    """
    layout = recognise(weights)
    targets = {name: layout.target(name) for name in weights if not layout.is_dropped(name)}
    _check_version(weights, targets)
    depth = depth_of(filter(None, targets.values()))
    controls = _controls(weights, targets)
    expected = resnet_shapes(depth, controls)
    if layout.flat:
        counters = [str(target) for target in targets.values() if str(target).endswith(_COUNTER)]
        tracked = [name for name in counters if _statistics_of(name) in expected]
        expected |= dict.fromkeys(tracked, ())
    title = f'a ResNet-{depth} v1 with SN of {", ".join(SCOPES[controls])}, {layout.title}'
    return make_plan(layout.name, title, weights, targets, expected, layout.source_shape)


def keep_classifier(plan: Plan) -> Plan:
    """Return the plan of MMPretrain's ``ImageClassifier``: a backbone and its ``head.fc``.

    Raises:
        UsageError: the file has no classifier.
    """
    parts = {name.rsplit('.', 1)[-1]: name for name in plan.dropped}
    if set(parts) != {'weight', 'bias'} or len(plan.dropped) > 2:
        raise UsageError(f'it has no classifier to keep: it is {plan.title}.')
    classes = plan.weights[parts['bias']].numel()
    last = [shape for name, shape in plan.expected.items() if name.startswith('layer4.')]
    features = max(shape[0] for shape in last if shape)
    expected = {'head.fc.weight': (classes, features), 'head.fc.bias': (classes,)}
    targets = {name: f'head.fc.{part}' for part, name in parts.items()}
    head = make_plan(
        plan.layout, plan.title, plan.weights, targets, expected, lambda _, shape: shape
    )
    backbone = plan.under('backbone.')
    return replace(
        backbone,
        pairs={**backbone.pairs, **head.pairs},
        expected={**backbone.expected, **expected},
        dropped=[],
        misfits={**backbone.misfits, **head.misfits},
    )


def _statistics_of(counter: str) -> str:
    return counter.removesuffix(_COUNTER) + 'running_var'


def _check_version(weights: Mapping[str, Tensor], targets: Mapping[str, str | None]) -> None:
    named = {target: name for name, target in targets.items()}
    for target, name in named.items():
        conv = named.get(str(target).replace('.sn1.', '.conv1.'))
        if re.fullmatch(r'layer\d\.[1-9]\d*\.sn1\.weight', str(target)) and conv:
            channels, shape = weights[name].numel(), weights[conv].shape
            if len(shape) == 4 and shape[0] != channels == shape[1]:
                raise UsageError(
                    f'it is a pre-activation ResNet (v2), which normalizes before it convolves, as '
                    f'the {channels} channels of {shown(name)} show: no toolbox here has that one.'
                )


def _controls(weights: Mapping[str, Tensor], targets: Mapping[str, str | None]) -> int:
    """How many scopes most layers mix; what differs is a misfit then."""
    counts = Counter(
        weights[name].numel()
        for name, target in targets.items()
        if str(target).endswith('.mean_weight')
    )
    return max(SCOPES, key=lambda controls: counts[controls])
