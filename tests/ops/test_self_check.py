"""The Triton kernels prove themselves on a device, or it is left to ATen with one warning.

The CPU passes for a GPU here, and ATen's stages for Triton's, with each fault added to them.
`tests/kernels/triton/interpreted_self_check.py` does so with the kernels themselves.
"""

import sys
import threading
import warnings
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest
import torch

from sn_openmmlab import SwitchNorm
from sn_openmmlab.kernels import triton
from sn_openmmlab.kernels.agreement import by_stages
from sn_openmmlab.kernels.aten import stages as aten
from sn_openmmlab.ops import compute, self_check
from sn_openmmlab.ops.backends import BackendError, choose_backend, use_backend
from sn_openmmlab.ops.self_check import examine, fault
from tests.backends import HAS_CPP

CPU = torch.device('cpu')
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
# What the op chooses on a CPU where there is no Triton.
USUAL = 'cpp' if HAS_CPP else 'aten'


@pytest.fixture
def stages(on_fake_gpu, monkeypatch):
    """Return stages that run as those of Triton."""
    names = ('observe', 'normalize', 'sum_gradients', 'input_gradients')
    fake = SimpleNamespace(**{name: getattr(aten, name) for name in names})
    monkeypatch.setattr(triton, 'stages', fake, raising=False)
    # A process alone takes them too: there is no one call of theirs.
    monkeypatch.setattr(self_check, '_triton_at_once', by_stages(fake))
    monkeypatch.setattr(compute, '_triton_switch_norm', lambda: None)
    return fake


@pytest.fixture
def checks(stages, monkeypatch):
    """Return a list that grows by a device and a type with every check."""
    seen = []

    def count(device, dtype):
        seen.append((device, dtype))
        return examine(device, dtype)

    monkeypatch.setattr(self_check, 'examine', count)
    return seen


@pytest.fixture
def x():
    return torch.randn(2, 4, 3, 3)


def _change(stages, stage, place, by, where=lambda x: True):
    """Let a stage return its result at `place` changed by a function, for some inputs `x`."""
    right = getattr(stages, stage)

    def wrong(first, second, *rest):
        found = list(right(first, second, *rest))
        x = first if stage in ('observe', 'normalize') else second
        if where(x):
            found[place] = by(found[place])
        return tuple(found)

    setattr(stages, stage, wrong)


def _more(table):
    """Return a copy whose last number is wrong by a hundredth of the largest."""
    table = table.clone(memory_format=torch.contiguous_format)
    table.view(-1)[-1] += table.abs().max() / 100
    return table


FAULTS = {
    'the output': ('normalize', 0, _more),
    "the moments of 'bn'": ('observe', 1, _more),
    'the gradient of the input': ('input_gradients', 0, _more),
    'the gradient of γ': ('sum_gradients', 1, lambda c: torch.cat((_more(c[:1]), c[1:]))),
    'the gradient of β': ('sum_gradients', 1, lambda c: torch.cat((c[:1], _more(c[1:2]), c[2:]))),
    'the gradient of λ': ('input_gradients', 1, _more),
    'the gradient of λ′': ('input_gradients', 2, _more),
}


def _train(backend, x):
    """Return what a layer gives, its gradients and its statistics."""
    torch.manual_seed(1)
    layer = SwitchNorm(x.shape[1], scopes=('in', 'gn', 'ln', 'bn'), num_groups=2)
    x = x.clone().requires_grad_()
    with nullcontext() if backend is None else use_backend(backend):
        y = layer(x)
    y.backward(torch.ones_like(y).cumsum(-1))
    return {'y': y.detach(), 'dx': x.grad, **layer.state_dict(keep_vars=True)}


@contextmanager
def _one_warning():
    """Check that there is one warning, and yield a list that will hold its text."""
    texts = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        yield texts
    texts += [str(warning.message) for warning in caught]
    assert len(texts) == 1, texts
    assert texts[0].startswith('The Triton kernels of sn_openmmlab are not used on cpu: ')
    assert texts[0].endswith(
        "SN computes there by torch's own calls: the same results, but slower. python -m "
        'sn_openmmlab repeats the check, for a report; SN_OPENMMLAB_BACKEND=-triton leaves the '
        'kernels out without this warning.'
    )


@pytest.mark.filterwarnings('error')
def test_kernels_that_agree_are_used_after_one_check_for_each_type(checks, x):
    for _ in range(3):
        for dtype in DTYPES:
            assert choose_backend(x.to(dtype)) == 'triton'
            SwitchNorm(4)(x.to(dtype)).sum().backward()

    assert checks == [(CPU, dtype) for dtype in DTYPES]


@pytest.mark.parametrize('name', FAULTS)
def test_a_wrong_number_leaves_the_device_to_the_other_backends(stages, checks, x, name):
    expected = _train(USUAL, x)
    _change(stages, *FAULTS[name])

    with _one_warning() as texts:
        found = _train(None, x)
        assert choose_backend(x) == choose_backend(x.half()) == USUAL

    assert f'on cpu: the error of {name} is ' in texts[0]
    assert ' in contiguous float32. SN' in texts[0]
    assert len(checks) == 1
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


@pytest.mark.parametrize('name', FAULTS)
def test_a_nan_is_wrong(stages, name):
    stage, place, _ = FAULTS[name]
    _change(stages, stage, place, lambda table: torch.full_like(table, float('nan')))

    found = examine(CPU, torch.float16)

    assert found.startswith('the error of ') and found.endswith(' is nan in contiguous float16')


@pytest.mark.parametrize('wrong', DTYPES)
def test_a_type_may_be_the_only_one_that_is_wrong(stages, x, wrong):
    right = [dtype for dtype in DTYPES if dtype != wrong]
    _change(stages, 'input_gradients', 0, _more, lambda x: x.dtype == wrong)
    assert [choose_backend(x.to(dtype)) for dtype in right] == ['triton'] * 2

    with _one_warning() as texts:
        assert choose_backend(x.to(wrong)) == USUAL

    dtype = str(wrong).removeprefix('torch.')
    assert 'the error of the gradient of the input is' in texts[0]
    assert f' in contiguous {dtype}. SN' in texts[0]


def test_channels_last_may_be_the_only_format_that_is_wrong(stages, x):
    _change(stages, 'normalize', 0, _more, lambda x: not x.is_contiguous())

    with _one_warning() as texts:
        assert choose_backend(x) == USUAL

    assert 'the error of the output is' in texts[0] and ' in channels_last float32. SN' in texts[0]


def _raises(error):
    def stage(*args):
        raise error

    return stage


@pytest.mark.parametrize('stage', ['observe', 'normalize', 'sum_gradients', 'input_gradients'])
def test_an_exception_in_any_kernel_leaves_the_device_to_the_others(stages, x, stage):
    expected = _train(USUAL, x)
    error = RuntimeError('Failed to find C compiler. Please specify via CC environment variable')
    setattr(stages, stage, _raises(error))

    with _one_warning() as texts:
        found = _train(None, x)

    assert 'so install gcc and python3-dev, or name another compiler in CC (' in texts[0]
    assert 'RuntimeError: Failed to find C compiler.' in texts[0]
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_kernels_that_cannot_be_imported_leave_the_device_to_the_others(stages, x, monkeypatch):
    monkeypatch.delattr(triton, 'stages')
    monkeypatch.setitem(sys.modules, 'sn_openmmlab.kernels.triton.stages', None)

    with _one_warning() as texts:
        assert choose_backend(x) == USUAL

    assert ': ModuleNotFoundError: ' in texts[0] or ': ImportError: ' in texts[0]


def test_many_threads_check_once_and_warn_once(stages, checks, x):
    _change(stages, 'normalize', 0, _more)
    found = []
    start = threading.Barrier(8)

    def choose():
        start.wait()
        found.append(choose_backend(x))

    threads = [threading.Thread(target=choose) for _ in range(8)]
    with _one_warning():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert found == [USUAL] * 8
    assert len(checks) == 1


def test_each_device_is_checked_by_itself(stages, monkeypatch):
    wrong = torch.device('cuda', 1)
    monkeypatch.setattr(self_check, '_is_capturing', lambda device: False)
    monkeypatch.setattr(self_check, 'describe', str)
    monkeypatch.setattr(
        self_check, 'examine', lambda device, dtype: 'it burns' if device == wrong else None
    )

    with pytest.warns(UserWarning, match='not used on cuda:1: it burns[.]') as caught:
        found = [fault(torch.device('cuda', i), torch.float32) for i in (0, 1, 2, 1, 0)]

    assert found == [None, 'it burns', None, 'it burns', None]
    assert len(caught) == 1


def test_where_warnings_are_errors_the_next_call_goes_on(stages, x):
    _change(stages, 'normalize', 0, _more)

    with warnings.catch_warnings():
        warnings.simplefilter('error')
        with pytest.raises(UserWarning, match='not used on cpu'):
            choose_backend(x)
        assert choose_backend(x) == USUAL


def test_a_device_that_is_dead_after_a_failure_ends_the_run_with_advice(stages, x, monkeypatch):
    alive = iter([True, False])

    def synchronize(device):
        if not next(alive):
            raise RuntimeError('CUDA error: an illegal memory access was encountered')

    monkeypatch.setattr(self_check, '_synchronize', synchronize)
    stages.normalize = _raises(RuntimeError('CUDA error: an illegal memory access'))

    with pytest.raises(RuntimeError, match='start it again with SN_OPENMMLAB_BACKEND=-triton'):
        choose_backend(x)


def test_an_error_from_before_the_check_is_not_that_of_the_kernels(stages, x, monkeypatch):
    monkeypatch.setattr(self_check, '_synchronize', _raises(RuntimeError('device-side assert')))

    with pytest.raises(RuntimeError, match=r'^device-side assert$'):
        choose_backend(x)


def test_a_lack_of_memory_is_an_error_and_no_verdict(stages, checks, x):
    right = stages.observe
    stages.observe = _raises(torch.cuda.OutOfMemoryError('CUDA out of memory.'))
    with pytest.raises(torch.cuda.OutOfMemoryError):
        choose_backend(x)

    stages.observe = right

    assert choose_backend(x) == 'triton'
    assert len(checks) == 2


def test_nothing_is_checked_while_a_graph_is_captured(checks, x, monkeypatch):
    monkeypatch.setattr(self_check, '_is_capturing', lambda device: True)
    with pytest.warns(UserWarning, match='run the model once before the capture[.]$') as caught:
        assert [choose_backend(x.to(dtype)) for dtype in DTYPES] == [USUAL] * 3
    assert len(caught) == 1 and checks == []

    monkeypatch.setattr(self_check, '_is_capturing', lambda device: False)
    assert choose_backend(x) == 'triton'

    monkeypatch.setattr(self_check, '_is_capturing', _raises(AssertionError('asked again')))
    assert choose_backend(x) == 'triton'


@pytest.mark.filterwarnings('error')
def test_the_check_can_be_turned_off(stages, checks, x, set_environment):
    set_environment(gpu_check='0')
    _change(stages, 'normalize', 0, _more)

    assert choose_backend(x) == 'triton'
    assert checks == []


@pytest.mark.filterwarnings('error')
def test_where_triton_is_left_out_nothing_is_checked(checks, x, set_environment):
    set_environment('-triton')

    assert choose_backend(x) == USUAL
    assert checks == []


@pytest.mark.filterwarnings('error')
def test_forced_kernels_that_fail_are_an_error(stages, x, set_environment):
    set_environment('triton')
    assert choose_backend(x) == 'triton'

    _change(stages, 'normalize', 0, _more, lambda x: x.dtype == torch.float16)
    for _ in range(2):
        with pytest.raises(BackendError, match='the error of the output is '):
            choose_backend(x.half())


@pytest.mark.filterwarnings('error')
def test_use_backend_runs_the_kernels_unchecked(stages, checks, x):
    _change(stages, 'normalize', 0, _more)

    with use_backend('triton'):
        assert choose_backend(x) == 'triton'
    assert checks == []


@contextmanager
def _default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextmanager
def _deterministic():
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def _not_called(tensor):
    raise AssertionError('a hook saw a tensor of the check')


SURROUNDINGS = {
    'no gradients': torch.no_grad,
    'inference': torch.inference_mode,
    'autocast': lambda: torch.autocast('cpu', torch.bfloat16),
    'another default type': _default_dtype,
    'another default device': lambda: torch.device('meta'),
    'deterministic': _deterministic,
    'anomalies': lambda: torch.autograd.detect_anomaly(check_nan=True),
    'hooks': lambda: torch.autograd.graph.saved_tensors_hooks(_not_called, _not_called),
}


@pytest.mark.filterwarnings('ignore:Anomaly Detection')
@pytest.mark.parametrize('name', SURROUNDINGS)
@pytest.mark.parametrize('right', [True, False])
def test_the_check_is_the_same_in_any_surroundings(stages, name, right):
    if not right:
        _change(stages, 'input_gradients', 0, _more)
    expected = examine(CPU, torch.bfloat16)
    assert (expected is None) == right

    with SURROUNDINGS[name]():
        assert examine(CPU, torch.bfloat16) == expected


def test_random_numbers_go_on_as_without_the_check(checks, x):
    torch.manual_seed(3)
    expected = torch.rand(4)

    torch.manual_seed(3)
    choose_backend(x)

    assert torch.equal(torch.rand(4), expected)
    assert len(checks) == 1


@pytest.mark.parametrize('use_reentrant', [True, False])
def test_checkpointing_may_hold_the_first_call(checks, x, use_reentrant):
    layer = SwitchNorm(4)

    y = torch.utils.checkpoint.checkpoint(layer, x.requires_grad_(), use_reentrant=use_reentrant)
    y.sum().backward()

    assert x.grad is not None
    assert len(checks) == 1


def test_the_first_call_may_be_in_a_backward_pass(checks, x):
    class Late(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            with torch.enable_grad():
                leaf = grad.detach().requires_grad_()
                return torch.autograd.grad(SwitchNorm(4)(leaf).sum(), leaf)[0]

    Late.apply(x.requires_grad_()).sum().backward()

    assert len(checks) == 1
