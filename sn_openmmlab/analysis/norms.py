"""The norm layers of a model, with their kinds and their parts of the model."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torch import nn

from sn_openmmlab.layers.names import NORMS
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm

# mmcv's MMSyncBN and torchvision's frozen BatchNorm, which derive from no norm of torch.
_OTHER_NORMS = ('SyncBatchNorm', 'FrozenBatchNorm2d')
# Their names in configs by class name. mmengine has its own SyncBatchNorm, and turns SyncBN into
# _BatchNormXd in a single process.
_SHORT = {
    **dict.fromkeys(('BatchNorm1d', 'BatchNorm2d', 'BatchNorm3d', '_BatchNormXd'), 'BN'),
    **dict.fromkeys(('InstanceNorm1d', 'InstanceNorm2d', 'InstanceNorm3d'), 'IN'),
    'SyncBatchNorm': 'SyncBN',
    'BatchRenorm': 'BRN',
    'GroupNorm': 'GN',
    'LayerNorm': 'LN',
}
# The names that wrappers for distribution, test-time augmentation and compilation add.
_WRAPPERS = ('module', '_orig_mod', '_fsdp_wrapped_module')


@dataclass(frozen=True)
class NormLayer:
    """A norm layer of a model.

    Attributes:
        name: its path in the model, without wrappers.
        kind: its name in configs, as `'SN'`, `'SyncSN'`, `'BN'` or `'BRN'`, or else the name of its
            class.
        switchable: whether it is Switchable Normalization.
    """

    name: str
    kind: str
    switchable: bool


def norm_layers(model: nn.Module) -> list[NormLayer]:
    """Return the norm layers of a model, wrapped or not, in the order of its modules."""
    return [
        NormLayer(bare_name(name), _kind(layer), isinstance(layer, SwitchNorm))
        for name, layer in model.named_modules()
        if isinstance(layer, NORMS) or type(layer).__name__ in _OTHER_NORMS
    ]


def bare_name(name: str) -> str:
    """Return the path of a module without the names of wrappers."""
    return '.'.join(part for part in name.split('.') if part not in _WRAPPERS)


def part_of(name: str) -> str:
    """Return the part of a model that the layer of this name is in.

    That is the first name, as `backbone` or `neck`, or `bbox_head` of `roi_head.bbox_head.…`.
    """
    first, _, rest = name.partition('.')
    return rest.partition('.')[0] if first == 'roi_head' else first


def stage_of(name: str) -> str:
    """Return what holds the layer of this name within its part, as `layer1` of a backbone.

    Of a layer that the part holds itself, that is its own name.
    """
    return name.split(f'{part_of(name)}.', 1)[-1].partition('.')[0]


def describe_norms(layers: Sequence[NormLayer]) -> str:
    """Return one sentence that counts norm layers: SN by part of the model, others by kind.

    For example `SN in 61 layers (backbone 53, neck 8); other norms in 4: BN 4, as neck.bn.`
    """
    ours = [layer for layer in layers if layer.switchable]
    others = [layer for layer in layers if not layer.switchable]
    kinds = dict.fromkeys(layer.kind for layer in ours)
    said = ', '.join(_by_part(kind, [x for x in ours if x.kind == kind]) for kind in kinds)
    return f'{said or "SN in 0 layers"}; {_by_kind(others)}.'


def _by_part(kind: str, layers: Sequence[NormLayer]) -> str:
    parts = _counted(part_of(layer.name) for layer in layers)
    return f'{kind} in {_layers(len(layers))} ({parts})'


def _by_kind(layers: Sequence[NormLayer]) -> str:
    if not layers:
        return 'no other norms'
    return f'other norms in {len(layers)}: {_counted(x.kind for x in layers)}, as {layers[0].name}'


def _counted(names: Iterable[str]) -> str:
    return ', '.join(f'{name} {count}' for name, count in Counter(names).items())


def _layers(number: int) -> str:
    return f'{number} layer' if number == 1 else f'{number} layers'


def _kind(layer: nn.Module) -> str:
    if isinstance(layer, SwitchNorm):
        return 'SyncSN' if isinstance(layer, SyncSwitchNorm) else 'SN'
    name = type(layer).__name__
    return _SHORT.get(name, name)
