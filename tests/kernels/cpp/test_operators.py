"""The operators as torch sees them: schemas, results without data, derivatives."""

import pytest
import torch

from sn_openmmlab.kernels.contract import Forward, Mixture
from sn_openmmlab.kernels.cpp import stages
from sn_openmmlab.kernels.cpp.scopes import codes
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.ops.backends import obstacle

SCOPES = ('in', 'gn', 'ln', 'bn')
MIXTURE = Mixture(SCOPES, 2, 1, 1e-3)
LAYOUTS = {'contiguous': torch.contiguous_format, 'channels_last': torch.channels_last}


@pytest.fixture(params=[torch.float32, torch.bfloat16, torch.float64], ids=str)
def dtype(request):
    return request.param


@pytest.fixture(params=LAYOUTS)
def x(request, dtype):
    torch.manual_seed(0)
    return torch.randn(2, 4, 3, 5).to(dtype).contiguous(memory_format=LAYOUTS[request.param])


def _vectors(requires_grad=False):
    shapes = ((4,), (4,), (4,), (4,))
    return [torch.randn(shape).requires_grad_(requires_grad) for shape in shapes]


def _running():
    return torch.zeros(4), torch.ones(4), torch.tensor(0)


def _settings():
    return codes(SCOPES), *MIXTURE[1:]


def _check(name, arguments, tests=('test_schema', 'test_faketensor')):
    operator = getattr(torch.ops.sn_openmmlab, name).default
    torch.library.opcheck(operator, arguments, test_utils=tests)


def test_each_stage(x):
    weight, bias, *controls = _vectors()
    instances, batch = stages.observe(x, MIXTURE, True)
    _check('observe', (x, 1, True))
    arguments = (x, instances, batch, weight, bias, *controls, codes(SCOPES), 2, 1e-3)
    _check('normalize', arguments)
    _, mixed = stages.normalize(x, instances, batch, (weight, bias), controls, MIXTURE)
    _check('sum_gradients', (x, x, mixed, weight))
    sums, channels = stages.sum_gradients(x, x, mixed, weight)
    tables = (sums, instances, mixed, batch, channels[2:], weight, *controls)
    _check('input_gradients', (x, x, *tables, codes(SCOPES), 2, 1, True))


def test_the_whole_op(x):
    parameters = _vectors()
    arguments = (x, *parameters, *_running(), 0.1, True, *_settings())
    _check('switch_norm_forward', arguments)
    _, *tables = torch.ops.sn_openmmlab.switch_norm_forward(*arguments)
    wanted = [True] * 5
    _check(
        'switch_norm_backward',
        (x, x, *parameters, *tables, False, codes(SCOPES), 2, 1, wanted),
    )


def test_its_derivative_is_registered(x):
    vectors = _vectors(requires_grad=True)
    arguments = (x.requires_grad_(), *vectors, *_running(), 0.1, True, *_settings())
    _check('fused_switch_norm', arguments, ('test_schema', 'test_autograd_registration'))


def test_the_stages_one_by_one_are_the_whole_op(x):
    weight, bias, *controls = (v.requires_grad_() for v in _vectors())
    dy = torch.randn(x.shape).to(x.dtype)
    leaves = [x.requires_grad_(), weight, bias, *controls]
    y, moments = torch.ops.sn_openmmlab.fused_switch_norm(
        *leaves, None, None, None, None, True, *_settings()
    )
    expected = torch.autograd.grad(y, leaves, dy)

    with torch.no_grad():
        instances, batch = stages.observe(x, MIXTURE, True)
        found, mixed = stages.normalize(x, instances, batch, (weight, bias), controls, MIXTURE)
        sums, channels = stages.sum_gradients(dy, x, mixed, weight)
        forward = Forward(instances, mixed, batch, weight, tuple(controls))
        dx, *d_controls = stages.input_gradients(
            dy, x, sums, forward, channels[2:] / 2, MIXTURE, True
        )

    assert torch.equal(found, y) and torch.equal(batch, moments)
    for gradient, own in zip((dx, *channels[:2], *d_controls), expected, strict=True):
        torch.testing.assert_close(gradient.to(own.dtype), own)


def test_other_types_are_refused_with_a_sentence(x):
    with pytest.raises(TypeError, match='float32, float64, float16 and bfloat16, not Int'):
        torch.ops.sn_openmmlab.observe(x.int(), 0, True)


@pytest.mark.parametrize(
    ('name', 'shape', 'said'),
    [
        ('weight', (3,), 'weight must have one number for each of the 4 channels'),
        ('bias', (4, 1), 'bias must have one number for each of the 4 channels'),
        ('running_mean', (5,), 'running_mean must have one number'),
        ('running_var', (2,), 'running_var must have one number'),
        ('mean_weight', (3,), 'mean_weight must have one number for each of the 4 scopes'),
        ('var_weight', (3, 4), '4 channels do not split into 3 equal groups'),
        ('var_weight', (2, 4), 'as many groups of ratios as each other'),
    ],
)
@pytest.mark.parametrize('training', [True, False])
def test_a_parameter_of_another_size_is_refused_before_it_is_read(name, shape, said, training):
    layer = SwitchNorm(4, scopes=SCOPES, num_groups=2).train(training)
    tensors = {**dict(layer.named_parameters()), **dict(layer.named_buffers())}
    tensors[name] = torch.ones(shape)

    with pytest.raises(ValueError, match=said):
        torch.func.functional_call(layer, tensors, (torch.randn(2, 4, 3),))


@pytest.mark.parametrize('absent', [1, 2])
def test_running_statistics_that_are_not_all_there_are_refused(absent):
    running = [None if k == absent else tensor for k, tensor in enumerate(_running())]

    with pytest.raises(ValueError, match='running_mean and running_var are given together'):
        torch.ops.sn_openmmlab.fused_switch_norm(
            torch.randn(2, 4, 3), *_vectors(), *running, 0.1, True, *_settings()
        )


@pytest.mark.parametrize('name', [*dict(SwitchNorm(1).named_parameters()), 'running_mean'])
@pytest.mark.parametrize('training', [True, False])
def test_a_layer_with_tensors_without_data_is_refused(training, name):
    layer = SwitchNorm(4).train(training)
    tensors = {**dict(layer.named_parameters()), **dict(layer.named_buffers())}
    tensors[name] = tensors[name].detach().to('meta')

    with pytest.raises(RuntimeError, match='SN got tensors on cpu and meta'):
        torch.func.functional_call(layer, tensors, (torch.randn(2, 4, 3),))


def test_groups_that_do_not_divide_the_channels_are_refused():
    layer = SwitchNorm(4, scopes=('gn',), num_groups=2)
    layer.num_groups = 3

    with pytest.raises(ValueError, match='cannot split 4 channels into 3 equal groups'):
        layer(torch.randn(2, 4, 3))


def test_a_tensor_with_operators_of_its_own_gets_the_other_backend():
    class Logged(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            raise AssertionError('no operator is called')

    reason = obstacle('cpp', torch.Tensor._make_subclass(Logged, torch.ones(2, 4)))

    assert reason == 'a Logged has operators of its own, which the C++ kernels do not know'
