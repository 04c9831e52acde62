"""The hook that reports the norm layers of a run and applies ``sync_bn`` to SN."""

import logging

from mmengine.config import Config
from mmengine.dist import is_distributed
from mmengine.hooks import Hook
from mmengine.logging import print_log
from mmengine.runner import Runner
from torch import nn

from sn_openmmlab.analysis.norm_changes import changes_table, norm_changes
from sn_openmmlab.analysis.norms import describe_norms, norm_layers
from sn_openmmlab.checkpoints.trial_loading import unwrapped
from sn_openmmlab.config_tree import imported_modules, walk
from sn_openmmlab.hooks.averages import share_choices
from sn_openmmlab.hooks.norm_warnings import (
    warn_of_accumulation,
    warn_of_norm_eval,
    warn_of_schedule,
)
from sn_openmmlab.layers.batch_renorm import BatchRenorm
from sn_openmmlab.layers.convert.sync import convert_sync_switch_norm
from sn_openmmlab.layers.names import LAYERS, RENORM_LAYERS
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm

_UNREACHED = (
    "A norm_cfg = dict(type='{norm}') at the top of a config does not reach parts that a base "
    'config built with their own norm_cfg: set it in the backbone, the neck and the heads, or let '
    "model.type='WithNorm' replace them (with our tools, --norm {norm}); see "
    'docs/guides/your_config.md.'
)
_UNNAMED = "The config imports sn_openmmlab, but no norm_cfg in it has the type 'SN' or 'BRN'."


class NormCheckHook(Hook):
    """Log which norm layers a run has, and warn about settings that do not act on SN.

    Our tools add it to every run. For the toolbox's own tools, write in the config:

        custom_hooks = [dict(type='NormCheckHook')]

    It also applies ``sync_bn`` of the config to SN, which mmengine does for BatchNorm only. BRN has
    no synchronised form, which a warning says.
    """

    # Before EMAHook, which copies the model.
    priority = 'VERY_HIGH'

    def before_run(self, runner: Runner) -> None:
        """Apply ``sync_bn`` and log the norm layers, and which norms were replaced."""
        if changes := norm_changes(unwrapped(runner.model)):
            print_log(f'The norms of the model:\n{changes_table(changes)}', logger='current')
        sync_norms(runner.model, runner.cfg)
        log_norms(runner.model, runner.cfg)

    def before_train(self, runner: Runner) -> None:
        """Warn of settings that do not act as on BatchNorm; keep averages as sparse as the model.

        A model that starts from sparse weights needs the latter without a `SparsifyHook` too.
        """
        share_choices(runner)
        # Only training mode shows what is frozen or held in evaluation mode.
        runner.model.train()
        warn_of_norm_eval(runner.model)
        warn_of_accumulation(runner.model, runner.cfg)
        warn_of_schedule(runner.model, runner.max_iters - runner.iter)


def log_norms(model: nn.Module, config: Config) -> None:
    """Log how many layers of the model are SN, by part, and how many other norms there are.

    The level is WARNING if no layer is SN or BRN although the config imports the package or names
    one of them.
    """
    layers = norm_layers(model)
    as_wanted = norm_changes(unwrapped(model)) or any(
        layer.switchable or layer.kind in RENORM_LAYERS for layer in layers
    )
    why = '' if as_wanted else _why_none(config)
    print_log(
        f'{describe_norms(layers)} {why}'.strip(),
        logger='current',
        level=logging.WARNING if why else logging.INFO,
    )


def sync_norms(model: nn.Module, config: Config) -> None:
    """Turn SN into SyncSN, in place, if the config of a distributed run sets ``sync_bn``."""
    if not (is_distributed() and config.get('sync_bn')):
        return
    layers = [
        layer
        for layer in model.modules()
        if isinstance(layer, SwitchNorm) and not isinstance(layer, SyncSwitchNorm)
    ]
    for layer in layers:
        convert_sync_switch_norm(layer)
    number = sum(isinstance(layer, SyncSwitchNorm) for layer in layers)
    if number:
        print_log(
            f'sync_bn={config.sync_bn!r}: SN became SyncSN in {number} layers.', logger='current'
        )
    if number := sum(isinstance(layer, BatchRenorm) for layer in model.modules()):
        print_log(
            f'sync_bn={config.sync_bn!r} does not act on BRN: in {number} layers each process '
            'normalizes with its own batch.',
            logger='current',
            level=logging.WARNING,
        )


def _why_none(config: Config) -> str:
    """Return why a model has neither SN nor BRN, if its config looks as if it should."""
    types = [part.get('type') for _, part in walk(dict(config.items()))]
    for norm, layers in (('SN', LAYERS), ('BRN', RENORM_LAYERS)):
        if any(kind in (*layers, *layers.values()) for kind in types):
            return _UNREACHED.format(norm=norm)
    return _UNNAMED if 'sn_openmmlab' in imported_modules(config) else ''
