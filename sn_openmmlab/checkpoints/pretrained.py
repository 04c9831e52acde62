"""The weight initializer ``SNPretrained``: any ResNet with SN, or any network with BatchNorm."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from mmengine.logging import print_log
from mmengine.model import PretrainedInit, is_model_wrapper, update_init_info
from mmengine.runner.checkpoint import load_state_dict
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from sn_openmmlab.checkpoints.files.fetching import fetch_checkpoint
from sn_openmmlab.checkpoints.files.weights import find_weights
from sn_openmmlab.checkpoints.names import few, few_misfits
from sn_openmmlab.checkpoints.plans.authors import to_toolbox
from sn_openmmlab.checkpoints.plans.batch_norm import fill_layers
from sn_openmmlab.checkpoints.plans.layouts import bare
from sn_openmmlab.checkpoints.plans.resnet import SCOPES
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.from_batch_norm import BATCH_RATIO
from sn_openmmlab.layers.switch_norm import SwitchNorm

_NORMS = (_NormBase, nn.GroupNorm, nn.LayerNorm)


class SNPretrained(PretrainedInit):
    """Starts a module with SN from a checkpoint, which it converts while loading.

    ``init_cfg=dict(type='SNPretrained', checkpoint='torchvision://resnet50')``

    The checkpoint is one of the authors' ImageNet ResNets in any layout that they were released
    in, one that was trained with the module's own layers, or one of the same network with
    BatchNorm. Where the module has no SN, it does what mmengine's ``Pretrained`` does. Files are
    read without running what they may hold. Weights that the module does not have are left out,
    as a classifier's; mmengine's log names them, and what the checkpoint lacks.

    Args:
        checkpoint: a file, an address, or what mmengine knows besides, as
            ``torchvision://resnet50`` and ``open-mmlab://resnet50_v1c``.
        batch_ratio: from BatchNorm, the importance ratio at which ``'bn'`` starts; see
            :func:`~sn_openmmlab.layers.from_batch_norm.convert_batch_norm`.
        prefix: of the names of the part to load, as ``'backbone.'``, which is found by itself
            where it is the only way.
        map_location: of ``torch.load``.

    Raises:
        UsageError: on the call. The checkpoint cannot be read; it leaves convolutions or norm
            layers of the module as they are, has weights of other shapes for them, or has blocks
            that the module lacks; a layer whose scopes lack ``'bn'`` would take over a BatchNorm;
            a later ``init_cfg`` of the module would overwrite the weights.
    """

    def __init__(
        self,
        checkpoint: str,
        batch_ratio: float = BATCH_RATIO,
        prefix: str | None = None,
        map_location: Any = 'cpu',
    ) -> None:
        super().__init__(checkpoint, prefix, map_location)
        self.batch_ratio = batch_ratio

    def __call__(self, module: nn.Module) -> None:
        _check_order(module)
        checkpoint = fetch_checkpoint(self.checkpoint, self.map_location)
        try:
            weights = _weights_for(module, checkpoint, self.prefix, self.batch_ratio)
            _check_filled(module, weights)
        except UsageError as error:
            raise UsageError(
                f'{self.checkpoint} cannot start {type(module).__name__}: {error}'
            ) from error
        _initialize_children(module)
        print_log(f'load model from: {self.checkpoint}', logger='current')
        load_state_dict(module, weights, strict=False, logger='current')
        if hasattr(module, '_params_init_info'):
            update_init_info(module, init_info=self._get_init_info())


def _check_order(module: nn.Module) -> None:
    """mmengine puts its own ``Pretrained`` last; this one has to be there."""
    cfgs = getattr(module, 'init_cfg', None)
    last = cfgs[-1]['type'] if isinstance(cfgs, list | tuple) and cfgs else SNPretrained
    if last not in (SNPretrained, SNPretrained.__name__):
        raise UsageError(
            f'the init_cfg of {type(module).__name__} has {last} after SNPretrained and would '
            'overwrite its weights: put SNPretrained last.'
        )


def _initialize_children(module: nn.Module) -> None:
    """Let the children initialize themselves, as mmengine would after this and so overwrite it."""
    for child in module.children():
        if is_model_wrapper(child) and not hasattr(child, 'init_weights'):
            child = child.module
        if hasattr(child, 'init_weights') and not getattr(child, 'is_init', False):
            child.init_weights()
            child.is_init = True


def _weights_for(
    module: nn.Module, checkpoint: Mapping[str, Any], prefix: str | None, batch_ratio: float
) -> dict[str, Tensor]:
    weights = _part(find_weights(checkpoint), module, prefix)
    layers = {name: m for name, m in module.named_modules() if isinstance(m, SwitchNorm)}
    controls = any(name.endswith('.mean_weight') for name in weights)
    if not layers:
        return weights
    of_authors = controls and not _are_own(weights, layers)
    weights = to_toolbox(weights).state_dict if of_authors else weights
    _check_scopes(layers, weights, of_authors)
    return fill_layers(layers, weights, batch_ratio)


def _part(
    weights: Mapping[str, Tensor], module: nn.Module, prefix: str | None
) -> dict[str, Tensor]:
    weights = {bare(name): weight for name, weight in weights.items()}
    if prefix is None:
        names = module.state_dict().keys()
        nested = {name.removeprefix('backbone.') for name in weights.keys() - names}
        prefix = 'backbone.' if names.isdisjoint(weights) and names & nested else ''
    if prefix and not prefix.endswith('.'):
        prefix += '.'
    part = {name: weight for name, weight in weights.items() if name.startswith(prefix)}
    if not part:
        raise UsageError(f'no weight in it starts with {prefix}, as {few(weights)} show.')
    return {name.removeprefix(prefix): weight for name, weight in part.items()}


def _are_own(weights: Mapping[str, Tensor], layers: Iterable[str]) -> bool:
    """Whether weights have the names and the form of the layers; the authors' have more dims."""
    return any(f'{name}.mean_weight' in weights for name in layers) and not any(
        weights[f'{name}.weight'].dim() > 1 for name in layers if f'{name}.weight' in weights
    )


def _check_scopes(
    layers: Mapping[str, SwitchNorm], weights: Mapping[str, Tensor], of_authors: bool
) -> None:
    for name, layer in layers.items():
        control = weights.get(f'{name}.mean_weight')
        if control is None:
            continue
        number, advice = control.numel(), 'the scopes that it was trained with'
        fits = number == len(layer.scopes)
        if of_authors:
            fits, advice = layer.scopes == SCOPES[number], f'scopes={SCOPES[number]}'
        if not fits:
            raise UsageError(
                f'it mixes {number} scopes, but the SN layer {name} mixes '
                f'{", ".join(layer.scopes)}: set {advice} in its norm_cfg.'
            )


def _check_filled(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    own, layers = module.state_dict(), dict(module.named_modules(remove_duplicate=False))
    missing, misfits = [], {}
    for name, weight in own.items():
        layer, _, part = name.rpartition('.')
        if part == 'num_batches_tracked' or not _has_to_be_filled(layers.get(layer)):
            continue
        if name in weights:
            if weights[name].shape != weight.shape:
                misfits[name] = (weights[name].shape, weight.shape)
        # The offsets of a deformable convolution are learned anew.
        elif f'{layer.rpartition(".")[0]}.weight' not in own:
            missing.append(name)
    if missing:
        raise UsageError(f'it lacks {few(missing)}{_without(weights, own)}.')
    if misfits:
        raise UsageError(f'it has {few_misfits(misfits)}.')
    more = [name for name in weights if name not in own and _is_of_missing_block(name, layers)]
    if more:
        raise UsageError(f'it has blocks that the module lacks, as {few(more)} show.')
    odd = [name for name in own if name in weights and not _is_dense(weights[name])]
    if odd:
        raise UsageError(f'these are not dense tensors: {few(odd)}.')


def _has_to_be_filled(layer: nn.Module | None) -> bool:
    weight = getattr(layer, 'weight', None)
    return isinstance(layer, _NORMS) or (isinstance(weight, Tensor) and weight.dim() > 2)


def _without(weights: Iterable[str], own: Iterable[str]) -> str:
    others = [name for name in weights if name not in own]
    return f', and has {few(others)} in their place' if others else ''


def _is_of_missing_block(name: str, layers: Mapping[str, nn.Module]) -> bool:
    """Whether a weight lies in a stage that a ResNet has, and in a block that it has not."""
    block = re.match(r'((?:.*\.)?layer\d)\.\d+(?=\.)', name)
    return block is not None and block[1] in layers and block[0] not in layers


def _is_dense(weight: Tensor) -> bool:
    return weight.layout == torch.strided and not weight.is_meta and not weight.is_quantized
