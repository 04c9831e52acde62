"""``WithNorm``: a model of the toolboxes with other norms than its config gives it."""

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MethodType
from typing import Any

from mmengine.model import BaseAveragedModel, BaseModule, PretrainedInit
from mmengine.model.utils import _BatchNormXd
from mmengine.registry import MODELS
from torch import nn

from sn_openmmlab.analysis.norm_changes import NormChange
from sn_openmmlab.analysis.norms import NormLayer, bare_name, norm_layers
from sn_openmmlab.config_tree import walk
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.arguments import check_eps, check_flag, check_momentum
from sn_openmmlab.layers.convert.from_batch_norm import stop_folding
from sn_openmmlab.layers.convert.replace import (
    channels_of,
    reason_to_keep,
    replace_by,
    replace_by_switch_norm,
)
from sn_openmmlab.layers.names import LAYERS, RENORM_LAYERS
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.ops.arguments import check_scopes
from sn_openmmlab.runs.weights.sources import loads_by_itself

_OPTIONS = (
    'scopes',
    'num_groups',
    'num_ratio_groups',
    'correction',
    'eps',
    'momentum',
    'norm_eval',
    'requires_grad',
)


# Of all others it is not known what inputs they take.
_OTHERS = ('BN', 'SyncBN', 'GN', 'IN', 'BRN')


def build_with_norm(
    of: str | type | None = None,
    norm_cfg: Mapping[str, Any] | None = None,
    norm_parts: Sequence[str] | None = None,
    **model: Any,
) -> nn.Module:
    """Build a model and replace its BatchNorm, SyncBN, GroupNorm and SN layers by one norm.

    It is registered as ``WithNorm``, and ``--norm`` of the tools writes it. Norms that no option of
    the model reaches are replaced too. In a config:

        model = dict(type='WithNorm', of='EncoderDecoder', norm_cfg=dict(type='SN'), backbone=…, …)

    The model is of the type ``of``, without a wrapper, and is changed before an optimizer or DDP
    sees it. Layers keep their names. SN starts with equal ratios and keeps the eps and momentum of
    a BatchNorm, unless ``norm_cfg`` gives others; BRN keeps the eps. Where norms were replaced:

    - ``norm_eval`` of the toolboxes is switched off, and ``requires_grad=False`` in a ``norm_cfg``
      of the model is ignored; frozen stages stay frozen;
    - weights that an ``init_cfg`` or ``pretrained`` names are loaded by `SNPretrained`, which
      converts those of BatchNorm, if the norm is SN.

    LayerNorm, InstanceNorm and norms with a ``forward`` of their own stay. The model notes what
    became of each layer; `NormCheckHook` logs it as a table.

    Args:
        of: the type that the model had before.
        norm_cfg: the norm. ``'SN'`` and ``'SyncSN'`` may have ``scopes``, ``num_groups``,
            ``num_ratio_groups``, ``correction``, ``eps``, ``momentum``, ``norm_eval`` and
            ``requires_grad``; ``'BN'``, ``'SyncBN'``, ``'GN'``, ``'IN'`` and ``'BRN'`` what they
            take. None means ``dict(type='SN')``.
        norm_parts: the parts of the model in which to replace norms, such as ``['backbone']`` or
            ``['roi_head.bbox_head']``; None for all.
        **model: all other keys of the model.

    Returns:
        The model.

    Raises:
        UsageError: ``of`` or the norm is missing or unknown, the norm has wrong options or does not
            fit a layer, a part has no norms, or the model has none that can be replaced.
    """
    norm = _Norm.read(norm_cfg or dict(type='SN'))
    _check_of(of)
    built = MODELS.build({**_trained(model, norm, norm_parts), 'type': of})
    layers = norm_layers(built)
    _check_parts(layers, norm_parts, of)
    modules = {bare_name(name): module for name, module in built.named_modules()}
    changes = [_change(x, modules[x.name], norm, norm_parts) for x in layers]
    _check_any(changes, norm, of)
    _replace({c.name: modules[c.name] for c in changes if not c.reason}, built, norm)
    built.norm_changes = changes
    return built


@dataclass(frozen=True)
class _Norm:
    """The norm to put in place of others.

    Attributes:
        kind: its name, with aliases of SN resolved.
        options: what its class takes.
        trained: whether its parameters are trained where their stage is.
    """

    kind: str
    options: Mapping[str, Any]
    trained: bool

    @staticmethod
    def read(norm_cfg: Mapping[str, Any]) -> '_Norm':
        """Read a ``norm_cfg``; raise UsageError if it names no norm or has wrong options."""
        options = dict(norm_cfg)
        kind = options.pop('type', 'SN')
        trained = options.pop('requires_grad', True)
        if kind in LAYERS:
            _check_options({**options, 'requires_grad': trained})
            synced = LAYERS[kind] is LAYERS['SyncSN']
            return _Norm('SyncSN' if synced else 'SN', options, trained)
        kind = 'BRN' if kind in RENORM_LAYERS else kind
        if kind not in _OTHERS:
            raise UsageError(
                f'{kind!r} is no norm that can take the place of others: name one of '
                f'{", ".join(("SN", "SyncSN", *_OTHERS))}.'
            )
        if kind == 'GN':
            options.setdefault('num_groups', 32)
        return _Norm(kind, options, trained)

    @property
    def is_switchable(self) -> bool:
        """Whether it is SN or SyncSN."""
        return self.kind in LAYERS

    def put(self, layer: nn.Module) -> None:
        """Turn a layer into this norm."""
        if self.is_switchable:
            replace_by_switch_norm(layer, self.options, self.kind == 'SyncSN')
        else:
            # BRN loads the weights of a BatchNorm, which were trained with its eps.
            kept = {'eps': layer.eps} if self.kind == 'BRN' else {}
            replace_by(layer, partial(self._build, {**kept, **self.options}))
        if not self.trained:
            layer.requires_grad_(False)

    def _build(self, options: Mapping[str, Any], channels: int) -> nn.Module:
        if self.kind == 'BN':
            # The layer in whose place it comes need not have told its number of dimensions.
            return _BatchNormXd(channels, **options)
        from mmcv.cnn import build_norm_layer

        return build_norm_layer({'type': self.kind, **options}, channels)[1]


def _check_options(options: Mapping[str, Any]) -> None:
    unknown = [name for name in options if name not in _OPTIONS]
    if unknown:
        raise UsageError(
            f'the norm_cfg has {", ".join(unknown)}, but SN in place of another norm takes '
            f'{", ".join(_OPTIONS)}: everything else comes from the layer before.'
        )
    try:
        check_scopes(options.get('scopes', SwitchNorm(1).scopes))
        check_eps(options.get('eps', 0))
        check_momentum(options.get('momentum'))
        for name in ('norm_eval', 'requires_grad'):
            check_flag(name, options.get(name, False))
    except (TypeError, ValueError) as error:
        raise UsageError(f'the norm_cfg does not fit SN: {error}') from error


def _check_of(of: str | type | None) -> None:
    if of is None:
        raise UsageError("WithNorm needs the type of the model, as in of='EncoderDecoder'.")
    if not isinstance(of, str):
        return
    with MODELS.switch_scope_and_registry(None) as registry:
        if registry.get(of) is None:
            raise UsageError(
                f'WithNorm finds no model {of} in {registry.scope}: correct of, or name its '
                'toolbox, as in mmseg.EncoderDecoder.'
            )


def _trained(
    model: Mapping[str, Any], norm: _Norm, parts: Sequence[str] | None
) -> Mapping[str, Any]:
    """Return the keys of a model without ``requires_grad=False`` for norms to be replaced."""
    model = copy.deepcopy(dict(model))
    for place, settings in walk(model):
        norm_cfg = settings.get('norm_cfg')
        if not isinstance(norm_cfg, dict) or not _is_in(place, parts):
            continue
        if norm_cfg.get('type') != norm.kind and norm_cfg.get('type') not in LAYERS:
            norm_cfg.pop('requires_grad', None)
            if norm_cfg.get('type') == 'MMSyncBN':
                # mmcv's own SyncBN, with the same weights; a single process cannot build it.
                norm_cfg['type'] = 'SyncBN'
    return model


def _is_in(name: str, parts: Sequence[str] | None) -> bool:
    """Return whether a layer or a key of the config lies in one of the parts."""
    return parts is None or any(f'.{part}.' in f'.{name}.' for part in parts)


def _check_parts(layers: Sequence[NormLayer], parts: Sequence[str] | None, of: Any) -> None:
    empty = [p for p in parts or () if not any(_is_in(layer.name, [p]) for layer in layers)]
    if empty:
        own = ', '.join(dict.fromkeys(layer.name.split('.')[0] for layer in layers)) or 'none'
        raise UsageError(
            f'{_name(of)} has no norm layers in {", ".join(empty)}: its parts with norms are {own}.'
        )


def _change(
    layer: NormLayer, module: nn.Module, norm: _Norm, parts: Sequence[str] | None
) -> NormChange:
    if not _is_in(layer.name, parts):
        reason = 'not in the chosen parts'
    elif layer.kind == norm.kind:
        reason = f'it is {norm.kind} already, and keeps its options'
    else:
        reason = reason_to_keep(module, norm.is_switchable)
    return NormChange(layer.name, layer.kind, layer.kind if reason else norm.kind, reason or '')


def _check_any(changes: Collection[NormChange], norm: _Norm, of: Any) -> None:
    """Raise UsageError if nothing is replaced and no layer is of the norm already."""
    if any(not c.reason or c.after == norm.kind for c in changes):
        return
    kinds = ', '.join(dict.fromkeys(f'{c.before} ({c.reason})' for c in changes))
    raise UsageError(
        f'{_name(of)} has no BN, SyncBN or GN that could become {norm.kind}, '
        + (f'but {kinds}' if kinds else 'and no other norm')
        + ': train it without --norm, or name the norm in the norm_cfg of a part that takes one.'
    )


def _replace(layers: Mapping[str, nn.Module], model: nn.Module, norm: _Norm) -> None:
    for name, layer in layers.items():
        channels = channels_of(layer)
        try:
            norm.put(layer)
        except (ArithmeticError, AssertionError, TypeError, ValueError) as error:
            raise UsageError(
                f'{norm.kind} cannot take the place of {name}, which has {channels} channels: '
                f'{str(error).rstrip(".")}. Change its options, or choose other parts.'
            ) from error
    stop_folding(model, layers.values())
    _let_train(model, layers.values())
    _renew_averages(model)
    if norm.is_switchable:
        _convert_weights(model, layers)
    # A backbone freezes its frozen_stages again whenever its mode is set.
    model.train(model.training)


def _let_train(model: nn.Module, layers: Collection[nn.Module]) -> None:
    """Switch off ``norm_eval`` of the modules with replaced norms."""
    replaced = set(layers)
    for module in model.modules():
        held = getattr(module, 'norm_eval', False) and not isinstance(module, SwitchNorm)
        if held and not replaced.isdisjoint(module.modules()):
            module.norm_eval = False


def _renew_averages(model: nn.Module) -> None:
    """Let moving averages of weights in the model, as in BYOL, find the new parameters."""
    for module in model.modules():
        if isinstance(module, BaseAveragedModel):
            inner = module.module
            weights = inner.state_dict() if module.update_buffers else inner.named_parameters()
            module.avg_parameters = dict(weights)


def _convert_weights(model: nn.Module, layers: Collection[str]) -> None:
    """Let `SNPretrained` load what starts the modules with replaced norms."""
    for name, module in model.named_modules():
        if not any(layer.startswith(f'{name}.' if name else '') for layer in layers):
            continue
        init = getattr(module, 'init_cfg', None)
        if loads_by_itself(module) and (file := _file_of(module)):
            init = dict(type='Pretrained', checkpoint=file)
            # Its own code would load BatchNorm as it is.
            module.init_weights = MethodType(BaseModule.init_weights, module)
        if init:
            module.init_cfg = _converted(init)


def _file_of(module: nn.Module) -> str | None:
    """Return the file that a module with its own code to load one starts from."""
    init, pretrained = getattr(module, 'init_cfg', None), getattr(module, 'pretrained', None)
    named = isinstance(init, Mapping) and _is_pretrained(init) and init.get('checkpoint')
    return named or (pretrained if isinstance(pretrained, str) else None)


def _converted(init_cfg: Any) -> Any:
    if isinstance(init_cfg, list | tuple):
        # mmengine runs Pretrained last, wherever it stands.
        return [_converted(cfg) for cfg in sorted(init_cfg, key=_is_pretrained)]
    # Not more is asked of the file than Pretrained does: plugins, for example, are not in it.
    converts = {**init_cfg, 'type': 'SNPretrained', 'strict': False}
    return converts if _is_pretrained(init_cfg) else init_cfg


def _is_pretrained(init_cfg: Mapping[str, Any]) -> bool:
    return init_cfg.get('type') in ('Pretrained', PretrainedInit)


def _name(of: str | type) -> str:
    return of if isinstance(of, str) else of.__name__
