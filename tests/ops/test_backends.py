"""The op runs on the fastest backend that can run, or on the one that is forced."""

import sys
import threading
from importlib.util import find_spec

import pytest
import torch
from torch.autograd import forward_ad

from sn_openmmlab.ops import backends
from sn_openmmlab.ops.backends import (
    BackendError,
    choose_backend,
    fused_stages,
    obstacle,
    use_backend,
)
from sn_openmmlab.ops.switch_norm import switch_norm
from tests.backends import HAS_CPP, ON_CPU

FUSED = ('aten', 'cpp', 'triton')
# What the op chooses on a CPU.
USUAL = 'cpp' if HAS_CPP else 'aten'
NEEDS_TRITON = pytest.mark.skipif(find_spec('triton') is None, reason='Triton is not installed')


@pytest.fixture
def x():
    return torch.randn(2, 4, 3, 3)


class Elsewhere(torch.Tensor):
    """A tensor that says it is on another device."""

    is_cpu = False
    device = torch.device('meta')

    def __new__(cls, x):
        return x.as_subclass(cls)


def _op(x):
    control = torch.ones(1)
    options = {'scopes': ('in',), 'num_groups': 1, 'correction': 0, 'eps': 1e-5}
    return switch_norm(x, None, None, control, control, **options)[0]


def _assert_one_sentence(message):
    assert message.endswith('.') and '. ' not in message and '\n' not in message


@pytest.mark.parametrize('dtype', [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_on_the_cpu_it_is_the_compiled_op_or_that_of_aten_calls(x, dtype, monkeypatch):
    assert choose_backend(x.to(dtype)) == USUAL

    monkeypatch.setattr(backends, 'why_missing', lambda: 'they were not built')
    assert choose_backend(x.to(dtype)) == 'aten'


@pytest.mark.parametrize('name', ON_CPU)
def test_a_name_forces_the_backend(x, name):
    with use_backend(name):
        assert choose_backend(x) == name
        node = _op(x.clone().requires_grad_()).grad_fn.name()

    assert ('SwitchNorm' in node) == (name != 'plain')
    assert (node == 'FusedSwitchNormBackward') == (name == 'aten')


def test_the_inner_of_two_names_counts_and_then_the_outer_again(x):
    with use_backend('plain'):
        with use_backend('aten'):
            assert choose_backend(x) == 'aten'
        assert choose_backend(x) == 'plain'
    assert choose_backend(x) == USUAL


def test_after_an_error_the_choice_is_free_again(x):
    with pytest.raises(KeyError), use_backend('plain'), use_backend('aten'):
        raise KeyError

    assert choose_backend(x) == USUAL
    with use_backend('plain'):
        assert choose_backend(x) == 'plain'


def test_an_unknown_name_is_a_value_error_that_lists_the_known_ones(x):
    with use_backend('plain'):
        with pytest.raises(ValueError, match=r"^unknown backend 'cuda': .*'aten'.*") as error:
            use_backend('cuda').__enter__()
        assert choose_backend(x) == 'plain'

    _assert_one_sentence(str(error.value))


@pytest.mark.parametrize('forced', [None, 'plain'])
def test_a_second_thread_sees_the_choice_and_computes(x, forced):
    # The choice holds for the process, since autograd runs backward in threads of its own.
    found = []
    with use_backend(forced or 'aten'):
        thread = threading.Thread(target=lambda: found.append((choose_backend(x), _op(x))))
        thread.start()
        thread.join()

    assert found[0][0] == (forced or 'aten')
    torch.testing.assert_close(found[0][1], torch.nn.functional.instance_norm(x))


def _under_vmap(x):
    return torch.func.vmap(_op)(x.unsqueeze(0))


def _under_grad(x):
    return torch.func.grad(lambda x: _op(x).sum())(x)


def _under_forward_ad(x):
    with forward_ad.dual_level():
        return _op(forward_ad.make_dual(x, x))


def _under_compile(x):
    return torch.compile(_op, backend='eager', fullgraph=True)(x)


def _under_trace(x):
    return torch.jit.trace(_op, x, check_trace=False)


PLACES = {
    _under_vmap: 'torch.func',
    _under_grad: 'torch.func',
    _under_forward_ad: 'forward-mode',
    _under_trace: 'tracing',
}


@pytest.mark.parametrize('name', FUSED)
@pytest.mark.parametrize('place', PLACES)
def test_a_fused_backend_is_refused_where_only_the_plain_expression_can_run(x, place, name):
    with use_backend(name), pytest.raises(BackendError) as error:
        place(x)

    message = str(error.value)
    assert message.startswith(f"backend '{name}' cannot run here: ")
    assert PLACES[place] in message and f"leave use_backend('{name}') out" in message
    _assert_one_sentence(message)
    assert place(x) is not None


@pytest.mark.parametrize('name', FUSED)
def test_torch_compile_refuses_a_fused_name_and_says_why(x, name):
    # Dynamo wraps exceptions that are raised while it traces in its own class.
    with use_backend(name), pytest.raises(Exception, match=f"backend '{name}' cannot run here"):
        _under_compile(x)

    torch.testing.assert_close(_under_compile(x), _op(x))


def test_triton_is_refused_on_the_cpu(x, monkeypatch):
    monkeypatch.delenv('TRITON_INTERPRET', raising=False)

    with use_backend('triton'), pytest.raises(BackendError, match='needs a CUDA tensor') as error:
        _op(x)

    _assert_one_sentence(str(error.value))


def test_triton_is_refused_where_it_is_missing_or_does_not_take_the_type(x, monkeypatch):
    monkeypatch.setenv('TRITON_INTERPRET', '1')
    with use_backend('triton'):
        assert 'not torch.float64' in obstacle('triton', x.double())
        monkeypatch.setattr(backends, '_triton_version', lambda: 'Triton is not installed')
        assert obstacle('triton', x) == 'Triton is not installed'
        monkeypatch.setattr(backends, '_triton_version', lambda: (3, 5))
        assert obstacle('triton', x) == 'it needs Triton 3.6 or newer'


def test_a_missing_triton_is_named_without_a_warning(monkeypatch):
    monkeypatch.setattr(backends, 'find_spec', lambda name: None)

    assert backends._triton_version.__wrapped__() == 'Triton is not installed'


def test_a_triton_that_cannot_be_imported_is_named_in_a_warning(monkeypatch):
    # As where a file of Triton is missing; None in this table makes the import fail.
    monkeypatch.setattr(backends, 'find_spec', lambda name: name)
    monkeypatch.setitem(sys.modules, 'triton', None)

    with pytest.warns(UserWarning, match="On GPUs SN computes by torch's own calls"):
        reason = backends._triton_version.__wrapped__()

    assert reason.startswith('Triton cannot be imported (ModuleNotFoundError: ')


def test_a_scope_that_triton_does_not_fuse_goes_to_the_next_backend(x, monkeypatch):
    monkeypatch.setenv('TRITON_INTERPRET', '1')
    monkeypatch.setattr(backends, '_triton_version', lambda: (3, 6))
    monkeypatch.setattr(backends, 'FUSED_SCOPES', ('in', 'ln'))

    with use_backend('triton'):
        assert choose_backend(x, ('ln', 'in')) == 'triton'
        with pytest.raises(BackendError, match="do not fuse the scope 'bn'") as error:
            choose_backend(x, ('in', 'bn'))
    _assert_one_sentence(str(error.value))
    assert choose_backend(x, ('in', 'bn')) == USUAL


@pytest.mark.parametrize('name', ['aten', 'cpp', pytest.param('triton', marks=NEEDS_TRITON)])
def test_the_stages_of_a_fused_backend_are_in_its_package(name):
    assert fused_stages(name).__name__ == f'sn_openmmlab.kernels.{name}.stages'


def test_the_compiled_op_is_refused_elsewhere_and_for_other_types(x, monkeypatch):
    assert 'need a tensor on the CPU' in obstacle('cpp', Elsewhere(x))
    assert 'not torch.float8_e5m2' in obstacle('cpp', x.to(torch.float8_e5m2))
    monkeypatch.setattr(backends, 'why_missing', lambda: 'they were not built')
    assert obstacle('cpp', x) == 'they were not built'


def test_the_obstacle_of_another_device_is_named():
    class OnMps(torch.Tensor):
        is_mps = True

    assert 'MPS' in obstacle('aten', torch.zeros(1).as_subclass(OnMps))
    assert obstacle('plain', torch.zeros(1).as_subclass(OnMps)) is None
