"""What loading weights would fill, tried without changing the module."""

import copy
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import torch
from mmengine.model import BaseTTAModel, is_model_wrapper
from torch import Tensor, nn
from torch.func import functional_call

from sn_openmmlab.checkpoints.plans.norm_shapes import Shape
from sn_openmmlab.layers.sparse import choices_restored
from sn_openmmlab.layers.switch_norm import SwitchNorm

_COUNTER = 'num_batches_tracked'


@dataclass(frozen=True)
class LoadedLayer:
    """A module with weights of its own.

    Attributes:
        name: Its name in the network.
        module: The module.
        missing: Its own weights that the file lacks, by the names in the module.
        misfits: Own weight → its shape in the file, and the shape that is needed.
    """

    name: str
    module: nn.Module
    missing: tuple[str, ...]
    misfits: Mapping[str, tuple[Shape, Shape]]

    @property
    def filled(self) -> bool:
        """Whether it gets all its weights. Old files lack counters, which change nothing."""
        return not self.misfits and set(self.missing) <= {_COUNTER}

    @property
    def untouched(self) -> bool:
        """Whether it gets no weight. Torch fills in a missing counter."""
        own = {name for name, _ in _own_tensors(self.module)}
        return own - {_COUNTER} <= {*self.missing, *self.misfits}


@dataclass
class TrialLoad:
    """What loading would do.

    Attributes:
        layers: The layers of the network, in its order.
        unexpected: The names of weights that no layer takes.
    """

    layers: list[LoadedLayer] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)


def try_loading(module: nn.Module, state: Mapping[str, Tensor]) -> TrialLoad:
    """Load weights as MMEngine would, but into copies of the module's own.

    Modules may rename weights or compute some on loading; that happens to the copies.

    Raises:
        UsageError: A layer refuses its weights.
    """
    copies = {
        f'module.{name}': tensor.detach().clone()
        for name, tensor in chain(module.named_parameters(), module.named_buffers())
    }
    # Loading a choice would make the layers themselves sparse.
    with choices_restored(module), warnings.catch_warnings():
        # The caller reports what the layers warn about.
        warnings.simplefilter('ignore')
        return functional_call(_Trial(module), copies, (state,))


def left_by_own_code(module: nn.Module) -> list[str]:
    """Return the SN layers to which `init_weights` of the module gives no λ, tried on a copy."""
    trial = copy.deepcopy(module)
    layers = {n: layer for n, layer in trial.named_modules() if isinstance(layer, SwitchNorm)}
    for layer in layers.values():
        nn.init.constant_(layer.mean_weight, math.nan)
    with torch.random.fork_rng():
        trial.init_weights()
    return [name for name, layer in layers.items() if layer.mean_weight.isnan().any()]


def unwrapped(module: nn.Module) -> nn.Module:
    """Return the module inside wrappers for distribution and test-time augmentation."""
    while is_model_wrapper(module) or isinstance(module, BaseTTAModel):
        module = module.module
    return module


class _Trial(nn.Module):
    """Loads when it is called, since torch can swap tensors only around a call."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, state: Mapping[str, Tensor]) -> TrialLoad:
        trial, metadata = TrialLoad(), getattr(state, '_metadata', {})
        _load(self.module, dict(state), '', metadata, trial)
        return trial


def _load(
    module: nn.Module,
    state: dict[str, Tensor],
    prefix: str,
    metadata: Mapping[str, Any],
    trial: TrialLoad,
) -> None:
    module = unwrapped(module)
    missing, errors, record = [], [], metadata.get(prefix[:-1], {})
    module._load_from_state_dict(state, prefix, record, True, missing, trial.unexpected, errors)
    own = dict(_own_tensors(module))
    if own:
        lacking = tuple(name for name in own if prefix + name in missing)
        misfits = {
            name: (tuple(state[prefix + name].shape), tuple(tensor.shape))
            for name, tensor in own.items()
            if errors and prefix + name in state and state[prefix + name].shape != tensor.shape
        }
        trial.layers.append(LoadedLayer(prefix[:-1], module, lacking, misfits))
    for name, child in module._modules.items():
        if child is not None:
            inner = f'{prefix}{name}.'
            part = {key: weight for key, weight in state.items() if key.startswith(inner)}
            _load(child, part, inner, metadata, trial)


def _own_tensors(module: nn.Module) -> list[tuple[str, Tensor]]:
    """Return the parameters and buffers of the module itself that are saved with it."""
    named = chain(module._parameters.items(), module._buffers.items())
    left_out = module._non_persistent_buffers_set
    return [(name, value) for name, value in named if value is not None and name not in left_out]
