"""The layer as one node of a graph: for `torch.fx`, and for counters of operations."""

import torch
from torch import nn
from torch.fx import Proxy


def record_leaf(layer: nn.Module, x: Proxy) -> Proxy:
    """Record the call of `layer` on `x` as one module call, and return its output.

    By default torch.fx records only torch's own layers in this way.

    Raises:
        ValueError: if `layer` is the root of the recording, and so has no name.
    """
    name = x.tracer.path_of_module(layer)
    if not name:
        raise ValueError(
            f'torch.fx records a {type(layer).__name__} as one call, which a graph of that layer '
            'alone cannot hold: trace a module that has it as a child, as nn.Sequential(layer).'
        )
    return x.tracer.create_proxy('call_module', name, (x,), {})


def is_counted(layer: nn.Module) -> bool:
    """Return whether mmengine's or fvcore's counter of operations is recording `layer`.

    Both put hooks of this name on every module while they record.
    """
    hooks = layer._forward_pre_hooks
    return (
        bool(hooks)
        and torch.jit.is_tracing()
        and any(type(hook).__name__ == 'ScopePushHook' for hook in hooks.values())
    )
