"""The memory of the layer: its input saved for backward, its output, and small tables."""

import copy

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.profiler import ProfilerActivity, profile

from sn_openmmlab.kernels.aten import walk
from sn_openmmlab.layers.switch_norm import SwitchNorm

N, C, H, W = 4, 8, 48, 48
LAYOUTS = {
    'contiguous': lambda x: x,
    'channels_last': lambda x: x.contiguous(memory_format=torch.channels_last),
    'transposed': lambda x: x.transpose(2, 3).contiguous().transpose(2, 3),
    'samples_inside': lambda x: x.movedim(0, -1).contiguous().movedim(-1, 0),
    'every_second': lambda x: torch.stack([x, x], -1).flatten(-2)[..., ::2],
    'expanded': lambda x: x[:1].expand(x.shape),
}
DTYPES = [torch.float32, torch.bfloat16, torch.float64]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Make blocks much smaller than the input, with new scratch memory."""
    monkeypatch.setattr(walk, 'BLOCK_ELEMENTS', N * C * H * W // 32)
    monkeypatch.setattr(walk, '_kept', type(walk._kept)())


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


@pytest.mark.parametrize('training', [True, False], ids=['train', 'eval'])
@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('name', LAYOUTS)
def test_only_the_output_and_the_input_gradient_are_of_full_size(name, dtype, training):
    layer = SwitchNorm(C).train(training)
    x, dy = _inputs(name, dtype)

    y, forward = _allocations(lambda: layer(x))
    grads, backward = _allocations(lambda: torch.autograd.grad(y, [x, *layer.parameters()], dy))

    full = x.numel() * x.element_size()
    assert grads[0].shape == y.shape == x.shape
    for largest, *others in (forward, backward):
        assert largest == full
        # A block in float64, or twice in float32.
        assert max(others) <= 8 * walk.BLOCK_ELEMENTS <= full // 2


@pytest.mark.parametrize('name', LAYOUTS)
def test_a_frozen_input_needs_no_gradient_of_full_size(name):
    layer = SwitchNorm(C)
    x, dy = _inputs(name, torch.float32)
    y = layer(x.detach())

    _, sizes = _allocations(lambda: torch.autograd.grad(y, [*layer.parameters()], dy))

    assert max(sizes) <= 8 * walk.BLOCK_ELEMENTS


@pytest.mark.parametrize('expanded', [0.5, 1.0])
def test_the_gradient_of_a_sum_is_not_spread_out(expanded):
    layer = SwitchNorm(C)
    x, _ = _inputs('contiguous', torch.float32)
    y = layer(x)
    dy = torch.full((), expanded).expand(x.shape)

    _, (largest, *others) = _allocations(lambda: torch.autograd.grad(y, x, dy))

    assert largest == 4 * x.numel() and max(others) <= 8 * walk.BLOCK_ELEMENTS


@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('name', LAYOUTS)
def test_the_input_itself_and_small_tables_are_saved_for_backward(name, dtype):
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


def test_nothing_is_saved_without_gradients():
    layer = SwitchNorm(C)
    x, _ = _inputs('contiguous', torch.float32)

    def fail(tensor):
        raise AssertionError('saves a tensor')

    with saved_tensors_hooks(fail, fail), torch.no_grad():
        layer(x)


def test_the_layer_saves_no_more_for_backward_than_batch_norm():
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
