"""The time that the host spends on SN's Triton path, beside the whole calls of BatchNorm.

Where kernels are short, this time is what a layer costs on a GPU. The launches end where CUDA would
be called; see `stubbed_gpu.py`. BatchNorm's calls are on small inputs on the CPU.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from sn_openmmlab.kernels.contract import Mixture
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.ops.backends import use_backend
from studies.benchmarks.baselines import FUSED

# The names of BatchNorm on its inputs, of which the first is as small as can be.
BN_TINY, BN_SMALL = 'BN, 2×4×2×2', 'BN, 2×64×8×8'
# SN's rows are split over two programs, as those of most maps of a detector are over several.
SHAPES = {BN_TINY: (2, 4, 2, 2), BN_SMALL: (2, 64, 8, 8), FUSED: (1, 2, 65, 65)}
LAUNCHES = 'SN, launches alone'
NOTHING = 'a Python function of autograd'
CALLS_PER_TURN = 100

Call = Callable[[], object]
Times = dict[str, dict[str, list[float]]]


def time_on_host(rounds: int) -> Times:
    """Return microseconds per call, by what is called and by layer, in each round, in turns.

    Besides the whole calls it times the Python function of SN inside them that allocates and
    launches, and what torch does for any autograd function in Python, by one that computes nothing.
    All is the CPU time of the calling thread, so that other processes matter less.
    """
    with use_backend('triton'):
        calls = {name: _whole_calls(name) for name in SHAPES}
        calls |= {LAUNCHES: _launches(), NOTHING: _nothing()}
        return {
            what: _take_turns({name: own[what] for name, own in calls.items()}, rounds)
            for what in ('forward', 'backward')
        }


def _whole_calls(name: str) -> dict[str, Call]:
    """Return the forward and the backward pass of a layer in training."""
    shape = SHAPES[name]
    layer = (SwitchNorm if name == FUSED else nn.BatchNorm2d)(shape[1])
    x, dy = torch.randn(shape, requires_grad=True), torch.randn(shape)
    y, wanted = layer(x), [x, *layer.parameters()]
    return {
        'forward': lambda: layer(x),
        'backward': lambda: torch.autograd.grad(y, wanted, dy, retain_graph=True),
    }


def _launches() -> dict[str, Call]:
    """Return what the passes of SN allocate and launch, in training."""
    from sn_openmmlab.kernels.triton.whole import Layer, backward, forward

    layer = SwitchNorm(SHAPES[FUSED][1])
    buffers = (layer.running_mean, layer.running_var, layer.num_batches_tracked)
    mixture = Mixture(layer.scopes, layer.num_groups, layer.correction, layer.eps)
    own = Layer(*buffers, layer.momentum, False, mixture)
    x, dy = torch.randn(2, *SHAPES[FUSED])
    inputs = (x, *(parameter.detach() for parameter in layer.parameters()))
    _, *known = forward(*inputs, own)
    return {
        'forward': lambda: forward(*inputs, own),
        'backward': lambda: backward(dy, *inputs, *known, (True,) * 5),
    }


class _Nothing(torch.autograd.Function):
    """Take the arguments of SN, save them, and return tensors that are there."""

    @staticmethod
    def forward(ctx: Any, *inputs: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(*inputs)
        return torch.empty_like(inputs[0])

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return ctx.saved_tensors


def _nothing() -> dict[str, Call]:
    """Return the passes of an autograd function that computes nothing."""
    inputs = [torch.randn(SHAPES[FUSED], requires_grad=True), *SwitchNorm(2).parameters()]
    y, dy = _Nothing.apply(*inputs), torch.randn(SHAPES[FUSED])
    return {
        'forward': lambda: _Nothing.apply(*inputs),
        'backward': lambda: torch.autograd.grad(y, inputs, dy, retain_graph=True),
    }


def _take_turns(functions: Mapping[str, Call], rounds: int) -> dict[str, Sequence[float]]:
    times = {name: [] for name in functions}
    # The first round warms up.
    for round_ in range(rounds + 1):
        for name, function in functions.items():
            start = time.thread_time()
            for _ in range(CALLS_PER_TURN):
                function()
            if round_:
                times[name].append((time.thread_time() - start) / CALLS_PER_TURN * 1e6)
    return times
