"""The fused op as an autograd function: gradients to any order, and what autograd guarantees."""

import gc
import threading
import weakref
from itertools import combinations

import pytest
import torch
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from sn_openmmlab.ops.backends import use_backend
from sn_openmmlab.ops.switch_norm import switch_norm
from tests.backends import FUSED_ON_CPU
from tests.layouts import LAYOUTS

SCOPES = ('in', 'gn', 'ln', 'bn')
OPTIONS = {'scopes': SCOPES, 'num_groups': 2, 'correction': 0, 'eps': 0.1}
SHAPE = (2, 4, 3, 2)


@pytest.fixture(autouse=True, params=FUSED_ON_CPU)
def backend(request):
    with use_backend(request.param):
        yield request.param


def _op(*inputs):
    return switch_norm(*inputs, **OPTIONS)[0]


def _plainly(function):
    """Call `function` on the plain backend."""
    with use_backend('plain'):
        return function()


def _gradients(inputs, dy, wanted=None):
    return torch.autograd.grad(_op(*inputs), inputs if wanted is None else wanted, dy)


@pytest.fixture
def inputs(make_inputs):
    return make_inputs(SHAPE)


@pytest.fixture
def dy():
    return torch.randn(SHAPE, dtype=torch.float64)


@pytest.mark.parametrize('correction', [0, 1])
@pytest.mark.parametrize('name', ['channels_last', 'every_second', 'samples_inside'])
def test_gradients_in_other_layouts_and_with_given_batch_moments(name, correction, inputs):
    moments = torch.randn(4).double(), torch.rand(4).double()
    options = {**OPTIONS, 'correction': correction, 'batch_moments': moments}
    inputs[0] = LAYOUTS[name](inputs[0].detach()).requires_grad_()

    assert gradcheck(lambda *inputs: switch_norm(*inputs, **options)[0], inputs)


def test_second_derivatives(inputs):
    assert gradgradcheck(_op, inputs)


@pytest.mark.parametrize('absent', [(1,), (2,), (1, 2)], ids=['no γ', 'no β', 'neither'])
def test_gradients_without_some_parameters_are_those_with_their_constants(absent, inputs, dy):
    constants = {1: torch.ones(4, dtype=torch.float64), 2: torch.zeros(4, dtype=torch.float64)}
    given = [None if i in absent else value for i, value in enumerate(inputs)]
    present = [value for value in given if value is not None]

    found = torch.autograd.grad(_op(*given), present, dy)

    full = [constants[i] if i in absent else value for i, value in enumerate(inputs)]
    torch.testing.assert_close(found, torch.autograd.grad(_op(*full), present, dy))
    again = torch.autograd.grad(_op(*given), present, dy, create_graph=True)
    torch.testing.assert_close(again, found)


def _third(inputs, dy):
    """Return the first, second and third derivatives, each along the one before."""
    levels, function = [], _op(*inputs)
    for _ in range(3):
        grads = torch.autograd.grad(function, inputs, dy, create_graph=True, materialize_grads=True)
        function, dy = sum(grad.square().sum() for grad in grads), None
        levels.append(grads)
    return levels


def test_derivatives_to_third_order_are_those_of_the_plain_expression(inputs, dy):
    expected = _plainly(lambda: _third(inputs, dy))

    torch.testing.assert_close(_third(inputs, dy), expected)


def test_the_second_derivative_includes_that_by_the_output_gradient(inputs, dy):
    dy.requires_grad_()

    def second():
        grads = torch.autograd.grad(_op(*inputs), inputs, dy, create_graph=True)
        return torch.autograd.grad([g.square().sum() for g in grads], [dy, inputs[0], inputs[3]])

    torch.testing.assert_close(second(), _plainly(second))


@pytest.mark.parametrize('chosen', [c for k in (1, 2, 4) for c in combinations(range(5), k)])
def test_gradients_of_some_inputs_are_those_among_all(chosen, inputs, dy):
    everything = _gradients(inputs, dy)
    for i, value in enumerate(inputs):
        value.requires_grad_(i in chosen)

    found = _gradients(inputs, dy, [inputs[i] for i in chosen])

    torch.testing.assert_close(found, tuple(everything[i] for i in chosen), rtol=0, atol=0)
    again = torch.autograd.grad(_op(*inputs), [inputs[i] for i in chosen], dy, create_graph=True)
    torch.testing.assert_close(again, found)


def test_only_the_requested_gradients_are_returned(inputs, dy):
    everything = _gradients(inputs, dy)

    found = _gradients(inputs, dy, [inputs[1], inputs[4]])

    torch.testing.assert_close(found, (everything[1], everything[4]), rtol=0, atol=0)


def test_inputs_that_need_no_gradient_give_an_output_that_needs_none(inputs):
    y, observed = switch_norm(*[value.detach() for value in inputs], **OPTIONS)

    assert not y.requires_grad and not any(t.requires_grad for t in observed[:2])


def test_the_observed_moments_need_no_gradient_where_the_output_does(inputs):
    y, observed = switch_norm(*inputs, **OPTIONS)

    assert y.requires_grad and not any(t.requires_grad for t in observed[:2])


@pytest.mark.parametrize('mode', [torch.no_grad, torch.inference_mode])
def test_without_grad_mode_the_values_are_the_same(mode, inputs):
    expected = _op(*inputs).detach()

    with mode():
        y = _op(*inputs)
        from_inside = _op(*[value.clone() for value in inputs])

    assert not y.requires_grad
    assert torch.equal(y, expected) and torch.equal(from_inside, expected)


@pytest.mark.parametrize('changed', range(5), ids=['x', 'weight', 'bias', 'mean', 'var'])
def test_an_input_changed_in_place_before_backward_raises_torchs_usual_error(changed, inputs, dy):
    y = _op(*inputs)
    with torch.no_grad():
        inputs[changed].mul_(2)

    with pytest.raises(RuntimeError, match='modified by an inplace operation'):
        y.backward(dy)


@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize('shape', [(2, 4, 20, 20), (2, 4, 3, 3), (2, 4, 9), (2, 4)], ids=str)
@pytest.mark.parametrize('name', ['contiguous', 'channels_last'])
def test_an_inplace_relu_may_change_the_output(name, shape, dtype, make_inputs):
    inputs = make_inputs(shape, dtype=dtype)
    inputs[0] = LAYOUTS[name](inputs[0].detach()).requires_grad_()
    dy = torch.randn(shape).to(dtype)
    expected = torch.autograd.grad(torch.relu(_op(*inputs)), inputs, dy)

    found = torch.autograd.grad(torch.relu_(_op(*inputs)), inputs, dy)

    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_backward_frees_saved_tensors_and_a_second_one_raises_torchs_usual_error(inputs, dy):
    class Box:
        def __init__(self, tensor):
            self.tensor = tensor

    boxes = []

    def pack(tensor):
        box = Box(tensor)
        boxes.append(weakref.ref(box))
        return box

    with saved_tensors_hooks(pack, lambda box: box.tensor):
        y = _op(*inputs)
    assert boxes and all(box() is not None for box in boxes)
    y.backward(dy)
    gc.collect()

    assert all(box() is None for box in boxes)
    with pytest.raises(RuntimeError, match='backward through the graph a second time'):
        y.backward(dy)


def test_hooks_may_return_saved_tensors_that_lie_otherwise_in_memory(inputs, dy):
    def spread(tensor):
        return torch.stack([tensor, tensor.flip(0)], -1)[..., 0]

    with saved_tensors_hooks(lambda tensor: tensor, spread):
        y = _op(*inputs)

    torch.testing.assert_close(torch.autograd.grad(y, inputs, dy), _gradients(inputs, dy))


def test_a_kept_graph_gives_the_same_gradients_again(inputs, dy):
    y = _op(*inputs)

    first = torch.autograd.grad(y, inputs, dy, retain_graph=True)

    assert all(map(torch.equal, first, torch.autograd.grad(y, inputs, dy)))


def test_the_output_left_out_of_the_loss_has_zero_gradients(inputs, dy):
    y = _op(*inputs)
    unused = torch.autograd.grad((y * 0).sum() + inputs[0].sum(), inputs)

    assert torch.equal(unused[0], torch.ones(SHAPE, dtype=torch.float64))
    assert all((grad == 0).all() for grad in unused[1:])


def test_a_batch_of_output_gradients_gives_a_batch_of_gradients(inputs):
    batch = torch.randn(3, *SHAPE, dtype=torch.float64)

    found = torch.autograd.grad(_op(*inputs), inputs, batch, is_grads_batched=True)

    expected = zip(*(_gradients(inputs, dy) for dy in batch), strict=True)
    torch.testing.assert_close(found, tuple(map(torch.stack, expected)))


def test_forward_mode_over_backward_is_the_derivative_by_the_output_gradient(inputs, dy):
    y, tangent = _op(*inputs), torch.randn_like(dy)

    with forward_ad.dual_level():
        grads = torch.autograd.grad(y, inputs, forward_ad.make_dual(dy, tangent))
        found = tuple(forward_ad.unpack_dual(grad).tangent for grad in grads)

    torch.testing.assert_close(found, _gradients(inputs, tangent))


@pytest.mark.parametrize('reentrant', [False, True])
def test_checkpointing_gives_the_same_gradients(reentrant, inputs, dy):
    y = checkpoint(_op, *inputs, use_reentrant=reentrant)
    y.backward(dy)

    expected = _gradients(inputs, dy)
    assert all(torch.equal(value.grad, grad) for value, grad in zip(inputs, expected, strict=True))


def test_threads_do_not_disturb_each_other(make_inputs):
    # float16, so that every block uses the thread's scratch memory.
    cases = [make_inputs((2, 4, 40, 40), dtype=torch.float16) for _ in range(3)]
    alone = [(_op(*case), *_gradients(case, case[0])) for case in cases]
    found = [[] for _ in cases]

    def work(k):
        for _ in range(10):
            found[k].append((_op(*cases[k]), *_gradients(cases[k], cases[k][0])))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(cases))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for expected, results in zip(alone, found, strict=True):
        assert len(results) == 10
        assert all(all(map(torch.equal, result, expected)) for result in results)


@pytest.mark.parametrize('parameter', [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16])
def test_second_derivatives_have_the_types_of_their_inputs(dtype, parameter, make_inputs):
    x = make_inputs(SHAPE, dtype=dtype)[0]
    inputs = [x, *make_inputs(SHAPE, dtype=parameter)[1:]]

    grads = torch.autograd.grad(_op(*inputs).float().square().sum(), inputs, create_graph=True)
    seconds = torch.autograd.grad(sum(g.float().square().sum() for g in grads), inputs)

    assert [g.dtype for g in grads] == [g.dtype for g in seconds] == [v.dtype for v in inputs]
