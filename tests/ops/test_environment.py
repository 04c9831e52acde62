"""The environment variables choose backends, are read once, and are refused with one sentence."""

import pytest
import torch

from sn_openmmlab import SwitchNorm
from sn_openmmlab.errors import UsageError
from sn_openmmlab.ops import backends
from sn_openmmlab.ops.backends import BackendError, choose_backend, use_backend
from sn_openmmlab.ops.environment import BACKENDS, FUSED, backend_choice, checks_gpu
from tests.backends import ON_CPU


@pytest.fixture
def x():
    return torch.randn(2, 4, 3, 3)


def _assert_one_sentence(message):
    assert message.endswith('.') and '. ' not in message and '\n' not in message


@pytest.mark.parametrize('value', [None, '', '  '])
def test_without_a_value_every_backend_may_run(set_environment, value):
    set_environment(value, value)

    assert backend_choice() == (None, FUSED)
    assert checks_gpu()


@pytest.mark.parametrize('name', BACKENDS)
def test_a_name_leaves_no_other_backend(set_environment, name):
    set_environment(f' {name} ')

    assert backend_choice() == (name, () if name == 'plain' else (name,))


@pytest.mark.parametrize(
    ('value', 'left'),
    [
        ('-triton', ('cpp', 'aten')),
        ('-triton,-cpp', ('aten',)),
        ('-cpp, -triton', ('aten',)),
        ('-aten,-cpp,-triton', ()),
    ],
)
def test_a_minus_leaves_backends_out(set_environment, value, left):
    set_environment(value)

    assert backend_choice() == (None, left)


@pytest.mark.parametrize(
    'value', ['cuda', 'Aten', 'aten,cpp', 'aten,-cpp', '-plain', '-', '-x', ',']
)
def test_another_value_is_refused(set_environment, x, value):
    set_environment(value)

    with pytest.raises(UsageError) as error:
        choose_backend(x)

    message = str(error.value)
    assert message.startswith(f'SN_OPENMMLAB_BACKEND is {value!r}, but ')
    assert all(name in message for name in BACKENDS)
    _assert_one_sentence(message)


@pytest.mark.parametrize(('value', 'expected'), [('0', False), ('1', True)])
def test_the_check_of_gpus_can_be_turned_off(set_environment, value, expected):
    set_environment(gpu_check=value)

    assert checks_gpu() is expected


@pytest.mark.parametrize('value', ['off', 'True', '2'])
def test_another_value_for_the_check_is_refused(set_environment, value):
    set_environment(gpu_check=value)

    with pytest.raises(UsageError, match=f'^SN_OPENMMLAB_GPU_CHECK is {value!r}, ') as error:
        checks_gpu()

    _assert_one_sentence(str(error.value))


@pytest.mark.parametrize('name', ON_CPU)
def test_the_layer_runs_on_the_forced_backend(set_environment, x, name):
    set_environment(name)

    y = SwitchNorm(4)(x.clone().requires_grad_())

    assert choose_backend(x) == name
    assert (y.grad_fn.name() == 'FusedSwitchNormBackward') == (name == 'aten')


def test_the_backends_that_are_left_out_are_not_chosen(set_environment, x):
    set_environment('-cpp')
    assert choose_backend(x) == 'aten'

    set_environment('-cpp,-aten')
    assert choose_backend(x) == 'plain'


def test_use_backend_overrides_the_variable(set_environment, x):
    set_environment('plain')

    with use_backend('aten'):
        assert choose_backend(x) == 'aten'


def test_a_variable_is_read_once(set_environment, x, monkeypatch):
    set_environment('plain')
    choose_backend(x)

    monkeypatch.setenv('SN_OPENMMLAB_BACKEND', 'aten')

    assert choose_backend(x) == 'plain'


@pytest.mark.parametrize(
    ('name', 'reason'), [('triton', 'needs a CUDA tensor'), ('cpp', 'they were not built')]
)
def test_a_forced_backend_that_cannot_run_is_an_error(
    set_environment, x, monkeypatch, name, reason
):
    monkeypatch.setattr(backends, 'why_missing', lambda: 'they were not built')
    set_environment(name)

    with pytest.raises(BackendError, match=reason) as error:
        SwitchNorm(4)(x)

    message = str(error.value)
    assert message.startswith(f"backend '{name}' cannot run here: ")
    assert message.endswith('; unset SN_OPENMMLAB_BACKEND, and the op chooses one that can.')
    _assert_one_sentence(message)


def _by_compile(layer, x):
    # Else what other tests compiled counts towards the limit of one function.
    torch.compiler.reset()
    return torch.compile(layer, backend='eager', fullgraph=True)(x)


def _by_trace(layer, x):
    return torch.jit.trace(layer, x, check_trace=False)(x)


def _by_export(layer, x):
    return torch.export.export(layer, (x,)).module()(x)


def _by_vmap(layer, x):
    return torch.func.vmap(layer, randomness='error')(x[None])[0]


@pytest.mark.parametrize('way', [_by_compile, _by_trace, _by_export, _by_vmap])
def test_what_only_the_plain_expression_can_do_still_works(set_environment, x, way):
    layer = SwitchNorm(4).eval()
    expected = layer(x)
    set_environment('triton')

    torch.testing.assert_close(way(layer, x), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize('name', ON_CPU)
def test_second_derivatives_still_work(set_environment, name):
    set_environment(name)
    layer = SwitchNorm(2).double()
    x = torch.randn(2, 2, 3, dtype=torch.float64, requires_grad=True)

    assert torch.autograd.gradgradcheck(layer, x)
