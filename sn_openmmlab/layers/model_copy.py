"""Copy a model, whatever was done to it for training."""

import copy
import inspect
from types import FunctionType, MethodType
from typing import Any

from torch import Tensor, nn
from torch.distributed import ProcessGroup
from torch.nn.parallel import DataParallel, DistributedDataParallel

from sn_openmmlab.errors import UsageError


def bare_model(model: nn.Module) -> nn.Module:
    """Return the model inside torch's wrappers for several devices and for compilation."""
    while True:
        if isinstance(model, DataParallel | DistributedDataParallel):
            model = model.module
        elif isinstance(getattr(model, '_orig_mod', None), nn.Module):  # torch.compile(model)
            model = model._orig_mod
        else:
            return model


def copy_model(model: nn.Module) -> nn.Module:
    """Return a deep copy of `model` that shares nothing with it but process groups.

    Its weights, buffers and Python state are copies. A method that was compiled or wrapped on the
    instance, as by mmengine's `compile`, would still run the original's layers: the copy has the
    plain method of its own in its place.

    Raises:
        UsageError: if a part of the model cannot be copied.
    """
    memo = _shared_parts(model)
    try:
        copied = copy.deepcopy(model, memo)
    except Exception as error:  # A part can raise anything.
        raise UsageError(
            f'{type(model).__name__} cannot be copied ({type(error).__name__}: {error}), but the '
            'batches of a batch average run through a copy, so that the model itself does not '
            'change: make copy.deepcopy(model) work.'
        ) from error
    for module, own in zip(model.modules(), copied.modules(), strict=True):
        for name, method in _wrapped_methods(module).items():
            if id(method.__self__) in memo:
                vars(own)[name] = copy.deepcopy(method, memo)
    return copied


def _shared_parts(model: nn.Module) -> dict[int, Any]:
    """Return what `copy.deepcopy` would fail to copy, with what to use instead, by identity."""
    memo: dict[int, Any] = {}
    for module in model.modules():
        for value in vars(module).values():
            if isinstance(value, ProcessGroup):
                memo[id(value)] = value
            # What an earlier forward pass left, such as the weight of a weight normalization.
            elif isinstance(value, Tensor) and not value.is_leaf:
                memo[id(value)] = value.detach().clone()
    return memo


def _wrapped_methods(module: nn.Module) -> dict[str, MethodType]:
    """Return the methods that functions among the attributes of a module wrap, by name."""
    functions = {name: f for name, f in vars(module).items() if isinstance(f, FunctionType)}
    inner = {name: inspect.unwrap(function) for name, function in functions.items()}
    return {name: method for name, method in inner.items() if isinstance(method, MethodType)}
