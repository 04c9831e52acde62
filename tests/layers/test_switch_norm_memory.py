"""The memory of the layer: its input saved for backward, its output, and small tables."""

import copy

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.profiler import ProfilerActivity, profile

from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.ops.backends import use_backend
from tests.backends import FUSED_ON_CPU, HAS_CPP

NEEDS_CPP = pytest.mark.skipif(not HAS_CPP, reason='the C++ kernels were not built')
N, C, H, W = 4, 8, 48, 48
# What the compiled loops visit as it is, and what they copy.
VISITED = {
    'contiguous': lambda x: x,
    'channels_last': lambda x: x.contiguous(memory_format=torch.channels_last),
    'transposed': lambda x: x.transpose(2, 3).contiguous().transpose(2, 3),
}
COPIED = {
    'samples_inside': lambda x: x.movedim(0, -1).contiguous().movedim(-1, 0),
    'every_second': lambda x: torch.stack([x, x], -1).flatten(-2)[..., ::2],
    'expanded': lambda x: x[:1].expand(x.shape),
}
LAYOUTS = {**VISITED, **COPIED}
# Tables of (N, C), in float64.
TABLES = 8 * 8 * N * C
DTYPES = [torch.float32, torch.bfloat16, torch.float64]


def _inputs(name, dtype):
    x = LAYOUTS[name](torch.randn(N, C, H, W).to(dtype)).requires_grad_()
    return x, LAYOUTS[name](torch.randn(N, C, H, W).to(dtype))


def _allocations(function):
    """Return the sizes in bytes of all that `function` allocates, inside kernels too."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        result = function()
    events = profiler.profiler.kineto_results.events()
    sizes = [event.nbytes() for event in events if event.name() == '[memory]']
    return result, sorted((size for size in sizes if size > 0), reverse=True)


def test_the_profiler_sees_what_is_allocated():
    x = torch.randn(N, C, H, W)

    _, sizes = _allocations(lambda: (x + 1).mul(2))

    assert sizes[:2] == [4 * x.numel()] * 2 and max(sizes[2:], default=0) <= 64


@pytest.fixture(params=FUSED_ON_CPU)
def backend(request):
    with use_backend(request.param):
        yield request.param


def _measure(layer, x, dy):
    """Return what forward and backward allocate."""
    y, forward = _allocations(lambda: layer(x))
    grads, backward = _allocations(lambda: torch.autograd.grad(y, [x, *layer.parameters()], dy))
    assert grads[0].shape == y.shape == x.shape
    return forward, backward


@NEEDS_CPP
@pytest.mark.parametrize('training', [True, False], ids=['train', 'eval'])
@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('name', VISITED)
def test_only_the_output_and_the_input_gradient_are_of_full_size(name, dtype, training):
    x, dy = _inputs(name, dtype)

    for largest, *others in _measure(SwitchNorm(C).train(training), x, dy):
        assert largest == x.numel() * x.element_size()
        assert max(others) <= TABLES < largest


@NEEDS_CPP
@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('name', COPIED)
def test_other_layouts_are_copied_in_their_own_type(name, dtype):
    x, dy = _inputs(name, dtype)

    for sizes in _measure(SwitchNorm(C), x, dy):
        assert max(sizes) == x.numel() * x.element_size()


@NEEDS_CPP
@pytest.mark.parametrize('name', VISITED)
def test_a_frozen_input_needs_no_gradient_of_full_size(name):
    layer = SwitchNorm(C)
    x, dy = _inputs(name, torch.float32)
    y = layer(x.detach())

    _, sizes = _allocations(lambda: torch.autograd.grad(y, [*layer.parameters()], dy))

    assert max(sizes) <= TABLES


@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('name', LAYOUTS)
def test_the_input_itself_and_small_tables_are_saved_for_backward(name, dtype, backend):
    layer = SwitchNorm(C)
    x, _ = _inputs(name, dtype)
    saved = []

    with saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        layer(x)

    big = [t for t in saved if t.numel() == x.numel()]
    assert len(big) == 1
    assert big[0].data_ptr() == x.data_ptr() and big[0].stride() == x.stride()
    # Four tables of (N, C), and a few of (C,).
    small = [t for t in saved if t.numel() < x.numel()]
    assert sum(t.numel() for t in small) <= 4 * N * C + 8 * C


def test_nothing_is_saved_without_gradients(backend):
    layer = SwitchNorm(C)
    x, _ = _inputs('contiguous', torch.float32)

    def fail(tensor):
        raise AssertionError('saves a tensor')

    with saved_tensors_hooks(fail, fail), torch.no_grad():
        layer(x)


def test_the_layer_saves_no_more_for_backward_than_batch_norm(backend):
    x, _ = _inputs('contiguous', torch.float32)
    sizes = {}
    for module in (SwitchNorm(C), torch.nn.BatchNorm2d(C)):
        saved = []
        with saved_tensors_hooks(lambda t, saved=saved: saved.append(t) or t, lambda t: t):
            module(x)
        sizes[type(module)] = sum(t.numel() for t in saved)

    assert sizes[SwitchNorm] <= sizes[torch.nn.BatchNorm2d] + 4 * N * C + 8 * C


def test_a_copy_of_a_layer_that_was_used_holds_no_graph():
    layer = SwitchNorm(C)
    x, dy = _inputs('contiguous', torch.float32)
    y = layer(x)

    twin = copy.deepcopy(layer)
    y.backward(dy)

    assert all(parameter.grad is None for parameter in twin.parameters())
    assert all(parameter.grad is not None for parameter in layer.parameters())
    torch.testing.assert_close(twin.state_dict(), layer.state_dict(), rtol=0, atol=0)
