"""What becomes of each sparse SN layer when its model is exported."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import fuse_conv_bn_weights

from sn_openmmlab.inference.export.trial import Trial
from sn_openmmlab.layers.switch_norm import SwitchNorm

# Of a layer that did not run on the trial image, such as one of an auxiliary head.
_USUAL_DIMS = 4
_AFFINE = ('weight', 'bias')
_RUNNING = ('running_mean', 'running_var', 'num_batches_tracked')


@dataclass(frozen=True)
class ExportedLayer:
    """An SN layer and what becomes of it.

    Attributes:
        name: its path in the model.
        norm: the entry of the table of `exported_norms.py`.
        weights: the weights that take the place of those of the layer and of the convolution into
            which it was folded, by their names in the model.
        reason: why it stays SN, or is not folded; `''` where there is nothing to say.
    """

    name: str
    norm: dict[str, Any]
    weights: dict[str, Tensor]
    reason: str = ''

    @property
    def stays(self) -> bool:
        """Whether it stays SN."""
        return self.norm['type'] == 'SN'

    @property
    def becomes(self) -> str:
        """Return in words what it becomes."""
        if self.norm['type'] == 'Folded':
            return f'folded into {self.norm["conv"]}'
        if self.stays:
            return 'stays SN'
        number = self.norm.get('num_groups')
        groups = {None: '', 1: ' of 1 group'}.get(number, f' of {number} groups')
        return f'{self.norm["type"]}{groups}'


def exported_layers(model: nn.Module, trial: Trial) -> list[ExportedLayer]:
    """Return what becomes of every SN layer of a sparse model, in the order of its modules.

    Args:
        model: in evaluation mode.
        trial: of that model.
    """
    names: dict[nn.Module, str] = {}
    layers = []
    for name, layer in model.named_modules(remove_duplicate=False):
        if isinstance(layer, SwitchNorm):
            first = names.setdefault(layer, name)
            layers.append(_exported(name, layer, model, trial, first))
    return layers


def _exported(
    name: str, layer: SwitchNorm, model: nn.Module, trial: Trial, first: str
) -> ExportedLayer:
    x = trial.inputs.get(first)
    dims = _USUAL_DIMS if x is None else x.dim()
    if reason := _reason_to_stay(layer, x):
        return ExportedLayer(name, _switch_norm(layer), _own(name, layer), reason)
    (scope,) = layer.used_scopes
    norm = _norm(scope, layer, dims)
    if scope != 'bn':
        kept = {f'{name}.{key}': value for key, value in _affine(layer).items()}
        return ExportedLayer(name, norm, kept)
    kept = {f'{name}.{key}': value for key, value in {**_affine(layer), **_running(layer)}.items()}
    conv = trial.folds.get(first)
    if conv is None:
        why = 'its input is not the output of one convolution alone' if x is not None else 'not run'
        return ExportedLayer(name, norm, kept, f'not folded: {why}')
    if first != name or not _is_alone(conv, model):
        return ExportedLayer(name, norm, kept, 'not folded: weights are shared')
    return ExportedLayer(name, dict(type='Folded', conv=conv), _folded(conv, layer, model))


def _reason_to_stay(layer: SwitchNorm, x: Tensor | None) -> str:
    if type(layer) is not SwitchNorm:
        return f'it is a {type(layer).__name__}'
    if len(layer.used_scopes) > 1:
        return f'mixes {" and ".join(layer.used_scopes)}'
    (scope,) = layer.used_scopes
    if scope == 'bn':
        return '' if layer.running_mean is not None else 'has no running statistics'
    if layer.correction:
        return "correction=1, which torch's norms lack"
    groups = {'in': layer.num_features, 'gn': layer.num_groups, 'ln': 1}[scope]
    # There SN gives β.
    alone = x is not None and x[0].numel() == groups
    return "torch's norms take no single value, as in one pixel" if alone else ''


def _norm(scope: str, layer: SwitchNorm, dims: int) -> dict[str, Any]:
    affine = layer.weight is not None
    if scope in ('ln', 'gn'):
        groups = layer.num_groups if scope == 'gn' else 1
        channels = layer.num_features
        return dict(
            type='GroupNorm', num_groups=groups, num_channels=channels, eps=layer.eps, affine=affine
        )
    kind = f'{"Batch" if scope == "bn" else "Instance"}Norm{max(dims - 2, 1)}d'
    return dict(type=kind, num_features=layer.num_features, eps=layer.eps, affine=affine)


def _switch_norm(layer: SwitchNorm) -> dict[str, Any]:
    options = ('num_features', 'eps', 'momentum', 'affine', 'num_groups', 'correction')
    return dict(
        type='SN',
        scopes=list(layer.scopes),
        track_running_stats=layer.running_mean is not None,
        num_ratio_groups=layer.num_ratio_groups,
        **{name: getattr(layer, name) for name in options},
    )


def _own(name: str, layer: nn.Module) -> dict[str, Tensor]:
    return {f'{name}.{key}': value for key, value in layer.state_dict().items()}


def _affine(layer: SwitchNorm) -> dict[str, Tensor]:
    return {key: value.detach() for key, value in layer.named_parameters() if key in _AFFINE}


def _running(layer: SwitchNorm) -> dict[str, Tensor]:
    return {key: getattr(layer, key) for key in _RUNNING}


def _is_alone(conv: str, model: nn.Module) -> bool:
    """Return whether nothing else in a model has the weight of a convolution."""
    weight = model.get_submodule(conv).weight
    names = [n for n, value in model.named_parameters(remove_duplicate=False) if value is weight]
    return len(names) == 1


def _folded(conv: str, layer: SwitchNorm, model: nn.Module) -> dict[str, Tensor]:
    """Return weight and bias of a convolution that also does what BatchNorm does after it."""
    module = model.get_submodule(conv)
    offset = torch.zeros_like(layer.running_mean) if module.bias is None else module.bias
    weights = (module.weight, offset, layer.running_mean, layer.running_var)
    conv_w, conv_b, mean, var = (weight.double() for weight in weights)
    # Without an affine map they are None, which the function takes.
    gamma, beta = (None if part is None else part.double() for part in (layer.weight, layer.bias))
    weight, bias = fuse_conv_bn_weights(conv_w, conv_b, mean, var, layer.eps, gamma, beta)
    dtype = module.weight.dtype
    return {f'{conv}.weight': weight.detach().to(dtype), f'{conv}.bias': bias.detach().to(dtype)}
