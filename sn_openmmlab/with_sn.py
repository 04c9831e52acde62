"""``WithSN``: a model of the toolboxes with SN instead of BatchNorm."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from mmengine.registry import MODELS
from torch import nn

from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.arguments import check_eps, check_flag, check_momentum
from sn_openmmlab.layers.convert.from_batch_norm import convert_batch_norm
from sn_openmmlab.layers.convert.sync import convert_sync_switch_norm
from sn_openmmlab.layers.names import LAYERS
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.ops.arguments import check_scopes

_OPTIONS = (
    'scopes',
    'num_groups',
    'correction',
    'eps',
    'momentum',
    'norm_eval',
    'requires_grad',
)


def build_with_sn(
    of: str | type | None = None, norm_cfg: Mapping[str, Any] | None = None, **model: Any
) -> nn.Module:
    """Build a model and turn each BatchNorm in it into SN, each SyncBN into SyncSN.

    It is registered as ``WithSN``, for models whose parts ignore or lack a ``norm_cfg``. The model
    is converted before an optimizer or DDP sees it. In a config:

        model = dict(type='WithSN', of='EncoderDecoder', norm_cfg=dict(type='SN'), backbone=…, …)

    The layers start with equal ratios and keep the name, eps, momentum and frozen state of their
    BatchNorm. The model is of the type ``of``, without a wrapper. SN, GroupNorm, LayerNorm and
    BatchNorms with their own ``forward`` stay unchanged; see `sn_openmmlab.convert_batch_norm`.

    Args:
        of: the type that the model had before.
        norm_cfg: the type ``'SN'``, or ``'SyncSN'`` to make all layers SyncSN, and optionally
            ``scopes``, ``num_groups``, ``correction``, ``eps``, ``momentum``, ``norm_eval`` and
            ``requires_grad``. None means ``dict(type='SN')``.
        **model: all other keys of the model.

    Returns:
        The model.

    Raises:
        UsageError: ``of`` is missing or unknown, ``norm_cfg`` has another type or wrong options,
            or a lazy BatchNorm has seen no data.
    """
    options = dict(norm_cfg or {})
    kind = options.pop('type', 'SN')
    _check_options(kind, options)
    _check_of(of)
    built = MODELS.build({**model, 'type': of})
    layers = _convert(built, options)
    if kind == 'SyncSN':
        for layer in layers:
            convert_sync_switch_norm(layer)
    return built


def _check_options(kind: Any, options: Mapping[str, Any]) -> None:
    if kind not in LAYERS:
        raise UsageError(f'WithSN converts to SN or SyncSN: its norm_cfg has the type {kind!r}.')
    unknown = [name for name in options if name not in _OPTIONS]
    if unknown:
        raise UsageError(
            f'the norm_cfg of WithSN has {", ".join(unknown)}, but may have {", ".join(_OPTIONS)}: '
            'everything else comes from the BatchNorm.'
        )


def _check_of(of: str | type | None) -> None:
    if of is None:
        raise UsageError("WithSN needs the type of the model, as in of='EncoderDecoder'.")
    if not isinstance(of, str):
        return
    with MODELS.switch_scope_and_registry(None) as registry:
        if registry.get(of) is None:
            raise UsageError(
                f'WithSN finds no model {of} in {registry.scope}: correct of, or name its toolbox, '
                'as in mmseg.EncoderDecoder.'
            )


def _convert(model: nn.Module, options: Mapping[str, Any]) -> list[SwitchNorm]:
    present = {layer for layer in model.modules() if isinstance(layer, SwitchNorm)}
    settings = {name: options[name] for name in ('num_groups', 'correction') if name in options}
    try:
        scopes = check_scopes(options.get('scopes', SwitchNorm(1).scopes))
        check_eps(options.get('eps', 0))
        check_momentum(options.get('momentum'))
        for name in ('norm_eval', 'requires_grad'):
            check_flag(name, options.get(name, False))
        # The conversion needs 'bn', in which it keeps the running statistics.
        batch = scopes if 'bn' in scopes else (*scopes, 'bn')
        convert_batch_norm(model, scopes=batch, **settings)
    except (TypeError, ValueError) as error:
        raise UsageError(f'WithSN cannot convert {type(model).__name__}: {error}') from error
    layers = [x for x in model.modules() if isinstance(x, SwitchNorm) and x not in present]
    for layer in layers:
        _start_anew(layer, scopes)
        for name in ('eps', 'momentum', 'norm_eval'):
            setattr(layer, name, options.get(name, getattr(layer, name)))
        layer.train(layer.training)
    if 'requires_grad' in options:
        _set_trained(model, layers, options['requires_grad'])
    return layers


def _start_anew(layer: SwitchNorm, scopes: tuple[str, ...]) -> None:
    """Give a converted layer these scopes and equal ratios."""
    layer.scopes = scopes
    for name in ('mean_weight', 'var_weight'):
        old = getattr(layer, name)
        new = torch.ones(len(scopes), dtype=old.dtype, device=old.device)
        setattr(layer, name, nn.Parameter(new, requires_grad=old.requires_grad))
    if 'bn' not in scopes:
        layer.track_running_stats = False
        for name in ('running_mean', 'running_var', 'num_batches_tracked'):
            setattr(layer, name, None)


def _set_trained(model: nn.Module, layers: Sequence[SwitchNorm], trained: bool) -> None:
    for layer in layers:
        layer.requires_grad_(trained)
    # A backbone freezes its frozen_stages again whenever its mode is set.
    model.train(model.training)
