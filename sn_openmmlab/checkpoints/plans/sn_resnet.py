"""ResNets with SN: the authors' ImageNet backbones in any released layout, or the toolboxes'."""

import re
from collections import Counter
from collections.abc import Mapping

from torch import Tensor

from sn_openmmlab.checkpoints.names import shown
from sn_openmmlab.checkpoints.plans.norm_shapes import AUTHORS_SCOPES, switch_norm
from sn_openmmlab.checkpoints.plans.plan import Plan, make_plan
from sn_openmmlab.checkpoints.plans.resnet import resnet_depth, resnet_shapes
from sn_openmmlab.checkpoints.plans.sn_resnet_names import find_naming
from sn_openmmlab.errors import UsageError

_COUNTER = 'num_batches_tracked'


def plan_sn_resnet(weights: Mapping[str, Tensor]) -> Plan:
    """Plan the conversion of a ResNet-50 or ResNet-101 v1 with SN.

    Raises:
        UsageError: The weights have no known layout, or no toolbox has their network.
    """
    naming = find_naming(weights)
    targets = {name: naming.target(name) for name in weights if not naming.is_dropped(name)}
    _check_version(weights, targets)
    depth = resnet_depth(filter(None, targets.values()), (50, 101))
    controls = _controls(weights, targets)
    expected = resnet_shapes(depth, switch_norm(controls))
    if naming.flat:
        counters = [str(target) for target in targets.values() if str(target).endswith(_COUNTER)]
        tracked = [name for name in counters if _statistics_of(name) in expected]
        expected |= dict.fromkeys(tracked, ())
    title = f'a ResNet-{depth} v1 with SN of {", ".join(AUTHORS_SCOPES[controls])}, {naming.title}'
    return make_plan(naming.layout, title, weights, targets, expected, naming.source_shape)


def _statistics_of(counter: str) -> str:
    return counter.removesuffix(_COUNTER) + 'running_var'


def _check_version(weights: Mapping[str, Tensor], targets: Mapping[str, str | None]) -> None:
    """Raise UsageError if norms have the input channels of their convolutions, as in ResNet v2."""
    named = {target: name for name, target in targets.items()}
    for target, name in named.items():
        conv = named.get(str(target).replace('.sn1.', '.conv1.'))
        if re.fullmatch(r'layer\d\.[1-9]\d*\.sn1\.weight', str(target)) and conv:
            channels, shape = weights[name].numel(), weights[conv].shape
            if len(shape) == 4 and shape[0] != channels == shape[1]:
                raise UsageError(
                    f'it is a pre-activation ResNet (v2), which normalizes before it convolves: '
                    f'{shown(name)} has {channels} channels. No toolbox here has that network.'
                )


def _controls(weights: Mapping[str, Tensor], targets: Mapping[str, str | None]) -> int:
    """Return how many scopes most layers mix; other layers are misfits then."""
    counts = Counter(
        weights[name].numel()
        for name, target in targets.items()
        if str(target).endswith('.mean_weight')
    )
    return max(AUTHORS_SCOPES, key=lambda controls: counts[controls])
