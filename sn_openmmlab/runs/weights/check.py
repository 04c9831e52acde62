"""The check of the weights that a run starts from, before anything is trained or tested."""

import copy
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from mmengine.config import Config
from mmengine.logging import print_log
from mmengine.registry import MODELS
from torch import Tensor, nn
from torch.distributed.fsdp import FullyShardedDataParallel

from sn_openmmlab.checkpoints.faults import find_fault
from sn_openmmlab.checkpoints.files.fetching import fetch_checkpoint
from sn_openmmlab.checkpoints.files.training_state import weights_alone
from sn_openmmlab.checkpoints.files.weights import weights_for_mmengine
from sn_openmmlab.checkpoints.fit import Fit
from sn_openmmlab.checkpoints.names import few, few_misfits
from sn_openmmlab.checkpoints.pretrained import SNPretrained
from sn_openmmlab.checkpoints.settings import TrainedSettings, advise_correction
from sn_openmmlab.checkpoints.trial_loading import left_by_own_code, unwrapped
from sn_openmmlab.errors import UsageError
from sn_openmmlab.hooks.non_finite.checks import is_non_finite
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.runs.weights.advice import advise, advise_test
from sn_openmmlab.runs.weights.sources import WeightSource, start_sources, teacher_sources


def check_start(model: nn.Module | dict, config: Config) -> None:
    """Raise UsageError if the weights that a training starts from do not fill its SN layers.

    Log what each file fills, and warn of frozen SN layers that no file fills. A file whose layers
    another one overwrites may lack them.

    Args:
        model: the model of the runner before training, or its config if it is not built yet.
        config: of the training, with its final ``resume`` and ``load_from``.
    """
    network = _network(model, config)
    if config.get('resume') and config.get('load_from'):
        check_resume(network, config.load_from)
        sources = teacher_sources(network, config)
    else:
        sources = start_sources(network, config)
    filled: set[int] = set()
    for source in sources:
        layers = _switch_norms(source.module)
        needed = [name for name, layer in layers.items() if id(layer) not in filled]
        # A class without SN may rename what it loads, as a Swin transformer does.
        if needed or not (layers or source.own_code):
            _check(source, needed)
        filled.update(map(id, layers.values()))
    if not config.get('resume'):
        _warn_of_frozen({n: x for n, x in _switch_norms(network).items() if id(x) not in filled})


def check_trained(model: nn.Module, source: str) -> None:
    """Raise UsageError if a checkpoint leaves weights of an evaluated model untrained.

    Args:
        model: bare, or wrapped for distribution or test-time augmentation.
        source: the checkpoint.
    """
    checkpoint = fetch_checkpoint(source)
    with _about(f'{source} cannot be evaluated by this config'):
        fit = _fit(model, checkpoint)
        if fault := find_fault(fit):
            raise UsageError(f'{fault.reason}: {advise_test(source, fault)}.')
        reason = f'it has {few_misfits(fit.misfits)}' if fit.misfits else None
        if fit.fills_nothing:
            reason = f'it holds none of the weights of this model, such as {few(fit.missing)}'
        if reason:
            raise UsageError(f'{reason}: give the config that it was trained with.')
    print_log(f'{source} fills {fit.line()}.', logger='current')
    if empty := [name for name, layer in fit.weighted.items() if not layer.filled]:
        print_log(
            f'{source} has no weights of {few(empty)}, which stay random: evaluate with the config '
            'that it was trained with.',
            logger='current',
            level=logging.WARNING,
        )


def check_resume(network: nn.Module, source: str) -> None:
    """Raise UsageError unless a checkpoint has exactly the weights of a network."""
    checkpoint = fetch_checkpoint(source)
    with _about(f'{source} cannot be continued by this config'):
        fit = _fit(network, checkpoint)
        if fault := find_fault(fit):
            raise UsageError(f'{fault.reason}: give the config that it was trained with.')
        reason = None
        if fit.misfits:
            reason = f'it has {few_misfits(fit.misfits)}'
        elif fit.missing:
            reason = f'it has no {few(fit.missing)}'
        elif fit.unexpected:
            reason = f'it also has {few(fit.unexpected)}'
        if reason:
            raise UsageError(
                f'{reason}: give the config that it was trained with, or start a new training from '
                f'its weights with {weights_alone(source)}.'
            )


def _network(model: nn.Module | dict, config: Config) -> nn.Module:
    """Return the model of the config, without the wrapper for several processes."""
    # A sharded model, or one that a strategy builds later, has no weights to compare.
    if not isinstance(model, nn.Module) or isinstance(model, FullyShardedDataParallel):
        return MODELS.build(copy.deepcopy(config.model))
    return unwrapped(model)


def _check(source: WeightSource, needed: list[str]) -> None:
    """Check one source, which must fill the SN layers of these names."""
    initializer = source.initializer
    if isinstance(initializer, SNPretrained) and source.loader == 'mmengine':
        fit = Fit(source.module, initializer.weights(source.module))
    else:
        checkpoint = fetch_checkpoint(source.file)
        with _about(f'{source.file} cannot start {source.target}'):
            fit = _fit(source.module, checkpoint, initializer.prefix if initializer else None)
            if fault := find_fault(fit, needed):
                raise UsageError(f'{fault.reason}: {advise(source, fault)}.')
            if fit.fills_nothing:
                raise UsageError(
                    f'it holds none of its weights, such as {few(fit.missing)}: name a file of '
                    'this network.'
                )
            left = left_by_own_code(source.module) if source.loader == 'class' else []
            if left:
                raise UsageError(
                    f'{type(source.module).__name__} loads with its own code, which leaves '
                    f'{len(left)} SN layers unchanged, such as {left[0]}: save the weights alone, '
                    'with no dict around them.'
                )
    print_log(f'{source.file} starts {source.target}: it fills {fit.line()}.', logger='current')


def _warn_of_frozen(unfilled: Mapping[str, SwitchNorm]) -> None:
    frozen = [
        name
        for name, layer in unfilled.items()
        if not any(p.requires_grad for p in layer.parameters())
    ]
    if frozen:
        print_log(
            'SN layers are frozen at their initial values, since no file fills them: '
            f'{few(frozen)}. To train that part from scratch, set frozen_stages=-1 in it and no '
            'requires_grad=False in its norm_cfg. Otherwise name its weights in init_cfg.',
            logger='current',
            level=logging.WARNING,
        )


def _fit(module: nn.Module, checkpoint: Mapping, prefix: str | None = None) -> Fit:
    """Return what mmengine would fill; raise UsageError if the settings of SN differ."""
    state = weights_for_mmengine(checkpoint, prefix)
    _check_finite(state)
    trained = TrainedSettings(checkpoint, state)
    # First by the names in the file, since a layer that refuses its weights cannot name the file.
    layers = _switch_norms(module).items()
    trained.check({name: layer for name, layer in layers if f'{name}.mean_weight' in state})
    fit = Fit(module, state)
    trained.check(fit.learned)
    if trained.of_authors and (warning := advise_correction(fit.learned)):
        print_log(warning, logger='current', level=logging.WARNING)
    return fit


def _check_finite(state: Mapping[str, Tensor]) -> None:
    tensors = {name: tensor for name, tensor in state.items() if isinstance(tensor, Tensor)}
    if wrong := [name for name, tensor in tensors.items() if is_non_finite(tensor)]:
        raise UsageError(
            f'its weights are NaN or infinite, such as {few(wrong)}: take an earlier checkpoint.'
        )


def _switch_norms(module: nn.Module) -> dict[str, SwitchNorm]:
    layers = unwrapped(module).named_modules()
    return {name: layer for name, layer in layers if isinstance(layer, SwitchNorm)}


@contextmanager
def _about(fault: str) -> Iterator[None]:
    """Begin the message of each UsageError with what cannot be done."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f'{fault}: {error}') from error
