"""SyncSN in two processes: odd batches, types, faults, and what it sends."""

import copy

import pytest
import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from sn_openmmlab import SwitchNorm, SyncSwitchNorm
from sn_openmmlab.ops.backends import use_backend
from tests.backends import BUILT

BACKENDS = BUILT
SHAPES = ((2, 4, 3, 2), (1, 4, 4, 5))
COLLECTIVES = [
    name
    for name in c10d.__all__
    if name.startswith(('all_', 'broadcast', 'reduce', 'gather', 'scatter', 'send', 'recv', 'bar'))
]


def _layer(kind, dtype=torch.float64, **options):
    torch.manual_seed(1)
    layer = kind(4, dtype=dtype, **options)
    with torch.no_grad():
        for tensor in layer.parameters():
            tensor.copy_(torch.randn(tensor.shape))
    return layer


def _input(shape, seed):
    """Return a batch, the gradient of its output, and a direction for second derivatives."""
    torch.manual_seed(seed)
    return [torch.randn(shape, dtype=torch.float64) for _ in range(3)]


def _outcome(layer, x, grad):
    x = x.clone().requires_grad_()
    y = layer(x)
    y.backward(grad)
    found = {name: parameter.grad for name, parameter in layer.named_parameters()}
    return {'y': y.detach(), 'x': x.grad, **found, **copy.deepcopy(dict(layer.named_buffers()))}


def _ragged(rank, dtype=torch.float64):
    x, grad, _ = (tensor.to(dtype) for tensor in _input(SHAPES[rank], rank))
    return _outcome(_layer(SyncSwitchNorm, dtype), x, grad)


def _without_samples(rank, empty):
    """Return states before and after all ranks have an empty batch, and the outcome if one has."""
    found = {}
    for momentum in (0.1, None):
        layer = _layer(SyncSwitchNorm, momentum=momentum)
        batch, *_ = _input(SHAPES[rank], rank)
        layer(batch)
        before = copy.deepcopy(layer.state_dict())
        nothing = torch.zeros(empty, dtype=torch.float64)
        outcome = _outcome(layer, nothing, nothing)
        found[str(momentum)] = (before, layer.state_dict(), outcome)
    x, grad, _ = _input(SHAPES[0] if rank == 0 else empty, 0)
    found['first'] = _outcome(_layer(SyncSwitchNorm), x, grad)
    return found


def _with_fault(rank, fault):
    layer = _layer(SyncSwitchNorm, scopes=('in', 'bn'))
    x = _input(SHAPES[rank], rank)[0]
    if rank == 1:
        x[0, 2, 0, 0] = fault
    return {'y': layer(x).detach(), 'running_mean': layer.running_mean}


def _sent(rank, train=True, **options):
    """Return the collectives of the forward and of the backward pass."""
    sent = []

    def spy(name, real):
        return lambda *args, **kwargs: (sent.append(name), real(*args, **kwargs))[1]

    with pytest.MonkeyPatch.context() as patch:
        for name in COLLECTIVES:
            patch.setattr(dist, name, spy(name, getattr(dist, name)))
        layer = _layer(SyncSwitchNorm, **options).train(train)
        y = layer(_input(SHAPES[rank], rank)[0].requires_grad_())
        forward = list(sent)
        y.sum().backward()
    return [forward, sent[len(forward) :]]


def _without_gradient(rank):
    """Return the gradient of x; on rank 1, x is empty and requires none."""
    x, grad, _ = _input((3 - 3 * rank, 4, 3, 2), 0)
    layer = _layer(SyncSwitchNorm)
    layer(x.requires_grad_(rank == 0)).backward(grad)
    return x.grad


def _second_order(rank):
    x, grad, direction = _input(SHAPES[0], rank)
    layer = _layer(SyncSwitchNorm)
    x.requires_grad_()
    (first,) = torch.autograd.grad(layer(x), x, grad, create_graph=True)
    return torch.autograd.grad(first, [x, *layer.parameters()], direction, allow_unused=True)


def _compiled(rank):
    layer = _layer(SyncSwitchNorm)
    x, grad, _ = _input(SHAPES[0], rank)
    x.requires_grad_()
    y = torch.compile(layer, backend='aot_eager', fullgraph=True)(x)
    y.backward(grad)
    return {'y': y.detach(), 'x': x.grad}


def _copies():
    group = dist.new_group([0, 1])
    layer = SyncSwitchNorm(4, process_group=group)
    copied = copy.deepcopy({'layer': layer, 'weight': layer.weight})
    return [
        copied['layer'].process_group is group,
        copied['layer'].weight is copied['weight'],
        copied['layer'].weight is not layer.weight,
    ]


def on_rank(rank, world):
    found = {
        'copies': _copies(),
        'compiled': _compiled(rank),
    }
    for backend in BACKENDS:
        with use_backend(backend):
            found[backend] = {
                'ragged': _ragged(rank),
                'float32': _ragged(rank, torch.float32),
                'bfloat16': _ragged(rank, torch.bfloat16),
                'no samples': _without_samples(rank, (0, 4, 3, 2)),
                'no positions': _without_samples(rank, (2, 4, 3, 0)),
                'nan': _with_fault(rank, float('nan')),
                'inf': _with_fault(rank, float('inf')),
                'training': _sent(rank),
                'evaluation': _sent(rank, train=False),
                'without bn': _sent(rank, scopes=('in', 'ln')),
                'untracked': _sent(rank, track_running_stats=False),
                'second order': _second_order(rank),
                'without gradient': _without_gradient(rank),
            }
    return found


@pytest.fixture(scope='module')
def ranks(run_ranks):
    return run_ranks(__file__, 2)


def _paper_of_ragged(layer, batches):
    """Return Eq. 2 to 5 on samples of different sizes, with equal weights in `'bn'`.

    `tests/reference.py` takes samples of one size.
    """
    means = torch.cat([x.flatten(2).mean(2) for x in batches])
    squares = torch.cat([x.flatten(2).square().mean(2) for x in batches])
    moments = {
        'in': (means, squares - means.square()),
        'ln': (means.mean(1, True), squares.mean(1, True) - means.mean(1, True).square()),
        'bn': (means.mean(0), squares.mean(0) - means.mean(0).square()),
    }
    w, w_var = layer.mean_weight.softmax(0), layer.var_weight.softmax(0)
    mean = sum(w[k] * moments[scope][0] for k, scope in enumerate(layer.scopes))
    var = sum(w_var[k] * moments[scope][1] for k, scope in enumerate(layer.scopes))
    scale = layer.weight / (var + layer.eps).sqrt()
    counts = [len(x) for x in batches]
    parts = zip(batches, mean.split(counts), scale.split(counts), strict=True)
    ys = [(x - _wide(m)) * _wide(s) + _wide(layer.bias[None]) for x, m, s in parts]
    return ys, tuple(table.detach() for table in moments['bn'])


def _wide(table):
    return table[:, :, None, None]


def _expected_of_ragged(dtype=torch.float64):
    layer = _layer(SwitchNorm).to(dtype).double()
    inputs = [_input(shape, rank) for rank, shape in enumerate(SHAPES)]
    batches = [x.to(dtype).double().requires_grad_() for x, *_ in inputs]
    grads = [grad.to(dtype).double() for _, grad, _ in inputs]
    ys, (mean, var) = _paper_of_ragged(layer, batches)
    torch.autograd.backward(ys, grads)
    expected = {name: parameter.grad for name, parameter in layer.named_parameters()}
    tables = {'running_mean': 0.1 * mean, 'running_var': 0.9 + 0.1 * var}
    xs = [x.grad for x in batches]
    return {**expected, **tables, 'y': [y.detach() for y in ys], 'x': xs}


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize(
    ('name', 'dtype', 'tolerance'),
    [
        ('ragged', torch.float64, 1e-10),
        ('float32', torch.float32, 2e-5),
        ('bfloat16', torch.bfloat16, 4e-2),
    ],
)
def test_ranks_of_different_sizes_pool_their_samples(name, dtype, tolerance, backend, ranks):
    found = [rank[backend][name] for rank in ranks]
    expected = _expected_of_ragged(dtype)

    joined = {key: [rank[key].double() for rank in found] for key in expected}
    for key in ('weight', 'bias', 'mean_weight', 'var_weight'):
        joined[key] = sum(joined[key])
    for key in ('running_mean', 'running_var'):
        assert torch.equal(*joined[key])
        joined[key] = joined[key][0]
    assert all(rank['y'].dtype == rank['x'].dtype == dtype for rank in found)
    torch.testing.assert_close(joined, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('empty', ['no samples', 'no positions'])
def test_empty_batches_on_all_ranks_change_nothing(empty, backend, ranks):
    for rank in ranks:
        for momentum in ('0.1', 'None'):
            before, after, outcome = rank[backend][empty][momentum]
            assert before['num_batches_tracked'] == 1
            torch.testing.assert_close(after, before, rtol=0, atol=0)
            for name in ('weight', 'bias', 'mean_weight', 'var_weight'):
                assert not outcome[name].any()


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('empty', ['no samples', 'no positions'])
def test_a_rank_with_an_empty_batch_does_not_affect_the_others(empty, backend, ranks):
    with_samples, without = (rank[backend][empty]['first'] for rank in ranks)
    x, grad, _ = _input(SHAPES[0], 0)
    alone = _outcome(_layer(SwitchNorm), x, grad)

    torch.testing.assert_close(with_samples, alone, rtol=1e-10, atol=1e-12)
    for name in ('weight', 'bias', 'mean_weight', 'var_weight'):
        assert not without[name].any()
    for name in ('running_mean', 'running_var', 'num_batches_tracked'):
        assert torch.equal(without[name], with_samples[name])


@pytest.mark.parametrize('backend', BACKENDS)
def test_an_empty_input_that_needs_no_gradient_still_takes_part_in_backward(backend, ranks):
    # MMDetection's RoI extractor of one level gives this where an image has no proposals.
    x, grad, _ = _input((3, 4, 3, 2), 0)
    expected = _outcome(_layer(SwitchNorm), x, grad)['x']

    torch.testing.assert_close(ranks[0][backend]['without gradient'], expected)
    assert ranks[1][backend]['without gradient'] is None


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('fault', ['nan', 'inf'])
def test_a_fault_of_one_rank_shows_on_all(fault, backend, ranks):
    for rank in ranks:
        y, running_mean = rank[backend][fault]['y'], rank[backend][fault]['running_mean']
        assert not y[:, 2].isfinite().any()
        assert y[:, [0, 1, 3]].isfinite().all()
        assert running_mean.isfinite().tolist() == [True, True, False, True]


@pytest.mark.parametrize('backend', BACKENDS)
def test_it_sends_one_all_reduce_each_way_and_only_in_training(backend, ranks):
    for rank in ranks:
        found = rank[backend]
        assert found['training'] == found['untracked'] == [['all_reduce'], ['all_reduce']]
        assert found['evaluation'] == found['without bn'] == [[], []]


@pytest.mark.parametrize('backend', BACKENDS)
def test_second_derivatives_pass_between_ranks(backend, ranks, paper):
    layer = _layer(SwitchNorm)
    x, grad, direction = (
        torch.cat(parts) for parts in zip(*(_input(SHAPES[0], r) for r in (0, 1)), strict=True)
    )
    x.requires_grad_()
    (first,) = torch.autograd.grad(paper(layer, x), x, grad, create_graph=True)
    inputs = [x, *layer.parameters()]
    expected = torch.autograd.grad(first, inputs, direction, materialize_grads=True)

    found = [rank[backend]['second order'] for rank in ranks]
    torch.testing.assert_close(torch.cat([rank[0] for rank in found]), expected[0])
    for ours, theirs in zip(zip(*found, strict=True), expected, strict=True):
        if theirs is not expected[0]:
            total = sum(part for part in ours if part is not None)
            torch.testing.assert_close(torch.as_tensor(total).expand_as(theirs).to(theirs), theirs)


def test_it_compiles_as_one_graph_with_a_group(ranks, paper):
    layer = _layer(SwitchNorm)
    inputs = [_input(SHAPES[0], rank) for rank in (0, 1)]
    x, grad = (torch.cat([rank[i] for rank in inputs]) for i in (0, 1))
    x.requires_grad_()
    y = paper(layer, x)
    y.backward(grad)

    for name, expected in (('y', y.detach()), ('x', x.grad)):
        found = torch.cat([rank['compiled'][name] for rank in ranks])
        torch.testing.assert_close(found, expected)


def test_a_deep_copy_shares_the_process_group(ranks):
    assert all(rank['copies'] == [True, True, True] for rank in ranks)
