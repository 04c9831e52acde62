"""The authors' ImageNet ResNets, from any layout that they were released in."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor

from sn_openmmlab.checkpoints.names import shown
from sn_openmmlab.checkpoints.plans.layouts import recognise
from sn_openmmlab.checkpoints.plans.plan import Plan, make_plan
from sn_openmmlab.checkpoints.plans.resnet import SCOPES, Shape, depth_of, resnet_shapes
from sn_openmmlab.errors import UsageError

_COUNTER = 'num_batches_tracked'


def to_toolbox(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of a ResNet by the names that MMDetection and its siblings give them.

    They are of one of the authors' ImageNet ResNet-50 or ResNet-101 v1 in any layout that they
    were released in, or in the toolboxes' own. The result shares no memory with them.

    Raises:
        UsageError: it is none of these, or weights are missing, of other shapes or too many; the
            message names them, and does not name the file.
    """
    plan = plan_backbone(weights)
    plan.check()
    return plan.convert()


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
    found = [re.fullmatch(r'(?:.*\.)?(?:fc|classifier)\.(weight|bias)', n) for n in plan.dropped]
    parts = {match[1]: match[0] for match in found if match}
    if set(parts) != {'weight', 'bias'} or len(plan.dropped) > 2:
        raise UsageError(f'it has no classifier to keep: it is {plan.title}.')
    classes = plan.weights[parts['bias']].numel()
    features = _features(plan, parts['weight'])
    expected = {'head.fc.weight': (classes, *features), 'head.fc.bias': (classes,)}
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


def _features(plan: Plan, classifier: str) -> Shape:
    """The channels that come out of a ResNet; of another network, that the classifier takes."""
    if plan.layout == 'bn':
        return tuple(plan.weights[classifier].shape[1:])
    return (max(shape[0] for shape in plan.expected.values() if shape),)


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
