"""The classifier of a backbone, as MMPretrain's `ImageClassifier` names it."""

import re
from dataclasses import replace

from sn_openmmlab.checkpoints.plans.batch_norm import BN_NETWORK
from sn_openmmlab.checkpoints.plans.norm_shapes import Shape
from sn_openmmlab.checkpoints.plans.plan import Plan, make_plan
from sn_openmmlab.errors import UsageError


def keep_classifier(plan: Plan) -> Plan:
    """Return the plan of a backbone with its classifier: `backbone.*` and `head.fc.*`.

    Raises:
        UsageError: The file has no classifier.
    """
    found = [re.fullmatch(r'(?:.*\.)?(?:fc|classifier)\.(weight|bias)', n) for n in plan.dropped]
    parts = {match[1]: match[0] for match in found if match}
    if set(parts) != {'weight', 'bias'} or len(plan.dropped) > 2:
        raise UsageError(f'it has no classifier to keep: it is {plan.title}.')
    classes = plan.weights[parts['bias']].numel()
    features = _features(plan, parts['weight'])
    expected = {'head.fc.weight': (classes, *features), 'head.fc.bias': (classes,)}
    targets = {name: f'head.fc.{part}' for part, name in parts.items()}
    head = make_plan(plan.layout, plan.title, plan.weights, targets, expected)
    backbone = plan.under('backbone.')
    return replace(
        backbone,
        pairs={**backbone.pairs, **head.pairs},
        expected={**backbone.expected, **expected},
        dropped=[],
        misfits={**backbone.misfits, **head.misfits},
    )


def _features(plan: Plan, classifier: str) -> Shape:
    """Return the output channels of a ResNet; for another network, the classifier tells them."""
    if plan.layout == BN_NETWORK:
        return tuple(plan.weights[classifier].shape[1:])
    return (max(shape[0] for shape in plan.expected.values() if shape),)
