"""What the log of a run says of its model's norm layers before the first step."""

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from mmengine.config import Config
from mmengine.dist import is_distributed
from mmengine.hooks import Hook
from mmengine.logging import print_log
from mmengine.runner import Runner
from torch import nn

from sn_openmmlab.analysis.norms import bare_name, describe_norms, norm_layers
from sn_openmmlab.layers.conversion import convert_sync_switch_norm
from sn_openmmlab.layers.names import LAYERS
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm

_UNREACHED = (
    "A norm_cfg = dict(type='SN') at the top of a config does not reach the parts of a model that "
    'a base config built with its own: name it in the backbone, the neck and the heads, or let '
    "model.type='WithSN' convert them (of our tools the option --convert-norms); see "
    'docs/your_config.md.'
)
_UNNAMED = "The config imports sn_openmmlab, but no norm_cfg in it names the type 'SN'."
_NOTHING = (
    'WithSN, and so --convert-norms, turns BatchNorm into SN, and there is none in this model: to '
    "have SN in place of other norms, name the type 'SN' in the norm_cfg of each part."
)
_COUNTS = 'accumulative_counts'


class NormsHook(Hook):
    """Counts the norm layers when a run starts, and says what does not do what it seems to.

    It also carries ``sync_bn`` of the config out, which mmengine does for BatchNorm only.
    """

    def before_run(self, runner: Runner) -> None:
        sync_norms(runner.model, runner.cfg)
        say_norms(runner.model, runner.cfg)

    def before_train(self, runner: Runner) -> None:
        # What is frozen or held in evaluation mode shows in training mode only.
        runner.model.train()
        warn_of_norm_eval(runner.model)
        warn_of_accumulation(runner.model, runner.cfg)


def say_norms(model: nn.Module, config: Config) -> None:
    """Log how many layers of the model are SN, by part, and how many other norms there are.

    It is a warning where none is SN, though the config imports the package or names SN.
    """
    layers = norm_layers(model)
    said = describe_norms(layers)
    if any(layer.switchable for layer in layers):
        why = ''
    elif config.get('model', {}).get('type') == 'WithSN':
        why = _NOTHING
    elif _names_sn(config):
        why = _UNREACHED
    else:
        why = _UNNAMED if _imports_package(config) else ''
    level = logging.WARNING if why else logging.INFO
    print_log(f'{said} {why}'.strip(), logger='current', level=level)


def sync_norms(model: nn.Module, config: Config) -> None:
    """Turn SN into SyncSN, in place, where a distributed run's config asks for it by sync_bn."""
    if not (is_distributed() and config.get('sync_bn')):
        return
    layers = [x for x in model.modules() if isinstance(x, SwitchNorm) and not _is_synced(x)]
    for layer in layers:
        convert_sync_switch_norm(layer)
    number = sum(map(_is_synced, layers))
    if number:
        print_log(
            f'sync_bn={config.sync_bn!r}: SN became SyncSN in {number} layers.', logger='current'
        )


def warn_of_norm_eval(model: nn.Module) -> None:
    """Log a warning for each part whose norm_eval does not hold the statistics of its SN layers.

    The toolboxes set BatchNorm alone to evaluation. The model has to be in training mode.
    """
    for name, part in _parts_with_norm_eval(model).items():
        layers = [layer for layer in part.modules() if _moves(layer)]
        if not layers:
            continue
        trained = any(p.requires_grad for layer in layers for p in layer.parameters())
        asked = 'has norm_eval=True' if trained else 'freezes its norms and has norm_eval=True'
        mean = '' if trained else 'They are NOT frozen as BatchNorm would be. '
        print_log(
            f'{name} {asked}, which reaches BatchNorm only: the running statistics of '
            f'{len(layers)} SN layers in it go on moving. {mean}To hold them, set norm_eval=True '
            f'in the norm_cfg of SN. To let them move, set norm_eval=False in {name}.',
            logger='current',
            level=logging.WARNING,
        )


def warn_of_accumulation(model: nn.Module, config: Config) -> None:
    """Log a warning where gradients are accumulated and SN layers normalize by their batch.

    mmengine says so of BatchNorm. The model has to be in training mode.
    """
    counts = [value for key, value in _settings(config.get('optim_wrapper')) if key == _COUNTS]
    count = max([value for value in counts if isinstance(value, int)], default=1)
    number = sum(
        isinstance(layer, SwitchNorm) and layer.training and 'bn' in layer.scopes
        for layer in model.modules()
    )
    if count > 1 and number:
        print_log(
            f'{_COUNTS}={count}: gradients are added up over {count} batches, but the bn of '
            f'{number} SN layers takes the statistics of each batch alone. If that is too few '
            "images, take a larger batch, or leave bn out: norm_cfg=dict(type='SN', "
            "scopes=('in', 'ln')).",
            logger='current',
            level=logging.WARNING,
        )


def _is_synced(layer: nn.Module) -> bool:
    return isinstance(layer, SyncSwitchNorm)


def _names_sn(config: Config) -> bool:
    types = [value for key, value in _settings(dict(config.items())) if key == 'type']
    return any(kind in (*LAYERS, *LAYERS.values()) for kind in types)


def _imports_package(config: Config) -> bool:
    imports = (config.get('custom_imports') or {}).get('imports', [])
    return 'sn_openmmlab' in ([imports] if isinstance(imports, str) else imports)


def _parts_with_norm_eval(model: nn.Module) -> dict[str, nn.Module]:
    """The outermost parts with norm_eval, by name; an SN layer's own is another matter."""
    found: dict[str, nn.Module] = {}
    inner: set[nn.Module] = set()
    for name, part in model.named_modules():
        asks = getattr(part, 'norm_eval', False) and not isinstance(part, SwitchNorm)
        if asks and part not in inner:
            found[bare_name(name)] = part
            inner.update(part.modules())
    return found


def _moves(layer: nn.Module) -> bool:
    tracks = isinstance(layer, SwitchNorm) and layer.running_mean is not None
    return tracks and layer.training and layer.momentum != 0


def _settings(part: Any) -> Iterator[tuple[str, Any]]:
    """Each key of the dicts in a part of a config, with its value."""
    if isinstance(part, Mapping):
        for key, value in part.items():
            yield key, value
            yield from _settings(value)
    elif isinstance(part, list | tuple):
        for item in part:
            yield from _settings(item)
