"""The weight initializer ``SNPretrained``: any ResNet with SN, or any network with BatchNorm."""

import logging
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from mmengine.logging import print_log
from mmengine.model import PretrainedInit, is_model_wrapper, update_init_info
from mmengine.runner.checkpoint import load_state_dict
from torch import Tensor, nn

from sn_openmmlab.checkpoints.files.fetching import fetch_checkpoint
from sn_openmmlab.checkpoints.files.weights import find_weights
from sn_openmmlab.checkpoints.names import few, few_misfits
from sn_openmmlab.checkpoints.plans.batch_norm import fill_layers
from sn_openmmlab.checkpoints.plans.layouts import bare, bare_names
from sn_openmmlab.checkpoints.plans.plan import check_usable
from sn_openmmlab.checkpoints.plans.resnet import SCOPES, Shape
from sn_openmmlab.checkpoints.plans.sn_resnet import to_toolbox
from sn_openmmlab.checkpoints.settings import TrainedSettings, advise_correction
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.from_batch_norm import BATCH_RATIO
from sn_openmmlab.layers.names import NORMS
from sn_openmmlab.layers.settings import MixSettings, mismatch, settings_of
from sn_openmmlab.layers.switch_norm import SwitchNorm


class SNPretrained(PretrainedInit):
    """Starts a module with SN from a checkpoint, which it converts while loading.

    ``init_cfg=dict(type='SNPretrained', checkpoint='torchvision://resnet50')``

    The checkpoint is one of the authors' ImageNet ResNets in any layout that they were released
    in, one that was trained with the module's own layers, or one of the same network with
    BatchNorm. Where the module has no SN, nothing is converted. Files are read without running
    what they may hold. Weights that the module does not have are left out, as a classifier's;
    mmengine's log names them, and what the checkpoint lacks.

    Args:
        checkpoint: a file, an address, or what mmengine knows besides, as
            ``torchvision://resnet50`` and ``open-mmlab://resnet50_v1c``.
        batch_ratio: from BatchNorm, the importance ratio at which ``'bn'`` starts; see
            :func:`~sn_openmmlab.layers.from_batch_norm.convert_batch_norm`. Layers that are frozen
            start at 1, so that they go on as the BatchNorm that they were.
        prefix: of the names of the part to load, as ``'backbone.'``, which is found by itself
            where it is the only way.
        map_location: of ``torch.load``.

    Raises:
        UsageError: there is no ``checkpoint``. On the call: it cannot be read; it leaves
            convolutions or norm layers of the module as they are, has weights of other shapes for
            them (but for other classes in the last layers), or has blocks that the module lacks,
            or γ and β for layers that have none; it has a weight twice, one that is not finite or
            no dense tensor of floating point, or a negative variance; its SN was trained with
            other scopes or another correction, as far as that is known; a layer whose scopes lack
            ``'bn'`` would take over a BatchNorm; a later ``init_cfg`` of the module would
            overwrite the weights.
    """

    def __init__(
        self,
        checkpoint: str | None = None,
        batch_ratio: float = BATCH_RATIO,
        prefix: str | None = None,
        map_location: Any = 'cpu',
    ) -> None:
        # Where mmengine builds it, Python's own message would name no config.
        if not checkpoint:
            raise UsageError(
                'an init_cfg has no checkpoint: name the file to start from, as in '
                "init_cfg=dict(type='SNPretrained', checkpoint=FILE)."
            )
        super().__init__(checkpoint, prefix, map_location)
        self.batch_ratio = batch_ratio

    def __call__(self, module: nn.Module) -> None:
        weights = self.weights(module)
        _initialize_children(module)
        print_log(f'load model from: {self.checkpoint}', logger='current')
        load_state_dict(module, weights, strict=False, logger='current')
        if hasattr(module, '_params_init_info'):
            update_init_info(module, init_info=self._get_init_info())
        # MMPretrain's ResNets set γ of their last norms to 0 unless they find this type.
        module.init_cfg = dict(type='Pretrained', checkpoint=self.checkpoint, prefix=self.prefix)

    def weights(self, module: nn.Module) -> dict[str, Tensor]:
        """Return the weights that a module would get, by its names; nothing is loaded.

        Raises:
            UsageError: as the call.
        """
        _check_order(module)
        checkpoint = fetch_checkpoint(self.checkpoint, self.map_location)
        try:
            weights = _weights_for(module, checkpoint, self.prefix, self.batch_ratio)
            _check_filled(module, weights)
            _check_others(module, weights)
            _check_values(module, weights)
        except UsageError as error:
            raise UsageError(
                f'{self.checkpoint} cannot start {type(module).__name__}: {error}'
            ) from error
        return weights


def _check_order(module: nn.Module) -> None:
    """mmengine puts its own ``Pretrained`` last; this one has to be there."""
    cfgs = getattr(module, 'init_cfg', None)
    types = [cfg['type'] for cfg in cfgs] if isinstance(cfgs, list | tuple) else []
    ours = [kind in (SNPretrained, SNPretrained.__name__) for kind in types]
    # Wherever it stands.
    plain = [kind for kind in types if kind in (PretrainedInit, 'Pretrained')]
    if any(ours) and not (ours[-1] and not plain):
        after = 'Pretrained' if plain else types[-1]
        raise UsageError(
            f'the init_cfg of {type(module).__name__} has {after} after SNPretrained and would '
            'overwrite its weights: put SNPretrained last, without Pretrained.'
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
    if not layers:
        return weights
    trained = TrainedSettings(checkpoint, weights)
    controls = any(name.endswith('.mean_weight') for name in weights)
    of_authors = controls and not _are_own(weights, layers)
    weights = to_toolbox(weights) if of_authors else weights
    learned = {name: m for name, m in layers.items() if f'{name}.mean_weight' in weights}
    if of_authors:
        _check_scopes_of_authors(learned, weights)
    else:
        trained.check(learned)
    if (of_authors or trained.of_authors) and (warning := advise_correction(learned)):
        print_log(warning, logger='current', level=logging.WARNING)
    return fill_layers(layers, weights, batch_ratio)


def _part(
    weights: Mapping[str, Tensor], module: nn.Module, prefix: str | None
) -> OrderedDict[str, Tensor]:
    """The weights of a part, and what its layers recorded, by the names in it."""
    records = {bare(name): record for name, record in weights._metadata.items()}
    weights = {name: weights[source] for name, source in bare_names(weights).items()}
    prefix = _found_prefix(weights, module) if prefix is None else bare(prefix)
    if prefix and not prefix.endswith('.'):
        prefix += '.'
    part, records = (
        {name.removeprefix(prefix): item for name, item in items.items() if name.startswith(prefix)}
        for items in (weights, records)
    )
    if not part:
        raise UsageError(f'no weight in it starts with {prefix}, as {few(weights)} show.')
    part = OrderedDict(part)
    part._metadata = records
    return part


def _found_prefix(weights: Mapping[str, Tensor], module: nn.Module) -> str:
    names = module.state_dict().keys()
    nested = {name.removeprefix('backbone.') for name in weights.keys() - names} & names
    twice = sorted(nested & weights.keys())
    if twice:
        raise UsageError(
            f'it has {few(twice)} with and without backbone. before it: say by prefix which to '
            "load, 'backbone.' or ''."
        )
    return 'backbone.' if nested and names.isdisjoint(weights) else ''


def _are_own(weights: Mapping[str, Tensor], layers: Iterable[str]) -> bool:
    """Whether weights have the names and the form of the layers; the authors' have more dims."""
    return any(f'{name}.mean_weight' in weights for name in layers) and not any(
        weights[f'{name}.weight'].dim() > 1 for name in layers if f'{name}.weight' in weights
    )


def _check_scopes_of_authors(
    layers: Mapping[str, SwitchNorm], weights: Mapping[str, Tensor]
) -> None:
    for name, layer in layers.items():
        number = weights[f'{name}.mean_weight'].numel()
        if fault := mismatch(name, MixSettings(SCOPES[number], None, None), settings_of(layer)):
            raise UsageError(fault)


def _check_filled(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    own, layers = module.state_dict(), dict(module.named_modules(remove_duplicate=False))
    missing, misfits = [], {}
    for name, weight in own.items():
        layer, _, part = name.rpartition('.')
        if part == 'num_batches_tracked' or not _has_to_be_filled(layers.get(layer)):
            continue
        if name in weights:
            if weights[name].shape != weight.shape:
                misfits[name] = (tuple(weights[name].shape), tuple(weight.shape))
        # The offsets of a deformable convolution are learned anew.
        elif f'{layer.rpartition(".")[0]}.weight' not in own:
            missing.append(name)
    if missing:
        raise UsageError(f'it lacks {few(missing)}{_without(weights, own)}.')
    if any(not _is_of_other_classes(name, *shapes, layers) for name, shapes in misfits.items()):
        raise UsageError(f'it has {few_misfits(misfits)}.')


def _is_of_other_classes(
    name: str, found: Shape, expected: Shape, layers: Mapping[str, nn.Module]
) -> bool:
    """Whether only the channels that come out of a layer differ; if all misfits do so, it is last.

    What follows a layer of other channels differs too: the channels of a norm, or those that go
    into a convolution.
    """
    layer, _, part = name.rpartition('.')
    is_norm = isinstance(layers[layer], NORMS)
    return not is_norm and (part == 'bias' or found[1:] == expected[1:])


def _check_others(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Raise UsageError where weights that the module has no place for show that it is another."""
    own, layers = module.state_dict(), dict(module.named_modules(remove_duplicate=False))
    others = [name for name in weights if name not in own]
    more = [name for name in others if _is_of_missing_block(name, layers)]
    if more:
        raise UsageError(f'it has blocks that the module lacks, as {few(more)} show.')
    affine = [name for name in others if _is_affine(name, layers)]
    if affine:
        raise UsageError(
            f'the norm layers of the module have no {few(affine)}: leave affine=False out of their '
            'norm_cfg.'
        )


def _check_values(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    own = module.state_dict()
    check_usable({n: weights[n] for n, w in own.items() if n in weights and w.is_floating_point()})


def _has_to_be_filled(layer: nn.Module | None) -> bool:
    weight = getattr(layer, 'weight', None)
    return isinstance(layer, NORMS) or (isinstance(weight, Tensor) and weight.dim() > 2)


def _without(weights: Iterable[str], own: Iterable[str]) -> str:
    others = [name for name in weights if name not in own]
    return f', and has {few(others)} in their place' if others else ''


def _is_of_missing_block(name: str, layers: Mapping[str, nn.Module]) -> bool:
    """Whether a weight lies in a stage that a ResNet or HRNet has, in a block that it has not.

    Other sequences may end early on purpose, as that of all stages.
    """
    block = re.match(r'((?:.*\.)?(?:layer|stage)\d)\.\d+(?=\.)', name)
    return block is not None and block[1] in layers and block[0] not in layers


def _is_affine(name: str, layers: Mapping[str, nn.Module]) -> bool:
    """Whether a weight is γ or β of a norm layer."""
    layer, _, part = name.rpartition('.')
    return isinstance(layers.get(layer), NORMS) and part in ('weight', 'bias')
