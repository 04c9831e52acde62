"""The layer under mmengine: optimizer groups, averaged models, checkpoints and training."""

import copy

import pytest
import torch
from mmengine.hooks import Hook
from mmengine.model import BaseModel, ExponentialMovingAverage, StochasticWeightAverage
from mmengine.optim import build_optim_wrapper
from mmengine.runner import Runner, load_checkpoint, save_checkpoint
from mmengine.runner.checkpoint import get_state_dict, weights_to_cpu
from torch import nn
from torch.utils.data import DataLoader

from sn_openmmlab.errors import WeightsError
from sn_openmmlab.layers.settings import recorded_settings, settings_of
from sn_openmmlab.layers.switch_norm import SwitchNorm

CONTROLS = {'1.mean_weight', '1.var_weight'}
NORM = {'1.weight', '1.bias', *CONTROLS}
BUFFERS = {'1.running_mean', '1.running_var'}


def _model(randomized):
    return nn.Sequential(nn.Conv2d(3, 4, 3), randomized(SwitchNorm(4)))


def _state(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def _train_step(model):
    """Take a step that changes every parameter and the running statistics."""
    model(torch.randn(2, 3, 6, 6))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape))


def test_norm_decay_mult_reaches_all_parameters_of_the_layer_and_not_the_convolution(randomized):
    model = _model(randomized)
    optimizer = {'type': 'SGD', 'lr': 0.1, 'weight_decay': 1e-4}
    cfg = {'optimizer': optimizer, 'paramwise_cfg': {'norm_decay_mult': 0.0}}

    groups = build_optim_wrapper(model, cfg).param_groups

    decays = {id(value): group['weight_decay'] for group in groups for value in group['params']}
    found = {name: decays[id(value)] for name, value in model.named_parameters()}
    assert found == {'0.weight': 1e-4, '0.bias': 1e-4, **dict.fromkeys(NORM, 0.0)}


@pytest.mark.parametrize('update_buffers', [True, False])
def test_the_exponential_moving_average_averages_every_parameter(update_buffers, randomized):
    model = _model(randomized)
    averaged = ExponentialMovingAverage(model, momentum=0.25, update_buffers=update_buffers)
    averaged.update_parameters(model)  # the first one copies
    names = {'0.weight', '0.bias', *NORM, *(BUFFERS if update_buffers else ())}
    expected = _state(model)

    for _ in range(3):
        _train_step(model)
        averaged.update_parameters(model)
        for name, value in _state(model).items():
            expected[name] = (
                0.75 * expected[name] + 0.25 * value
                if name in names
                else value  # buffers that are not averaged follow the model
            )

    found = _state(averaged.module)
    if update_buffers:  # mmengine averages floating-point numbers only
        for state in (found, expected):
            state.pop('1.num_batches_tracked')
    torch.testing.assert_close(found, expected)


def test_the_plain_average_averages_every_parameter(randomized):
    model = _model(randomized)
    averaged, seen = StochasticWeightAverage(model), []

    for _ in range(4):
        _train_step(model)
        averaged.update_parameters(model)
        seen.append(_state(model))

    for name in NORM:
        mean = torch.stack([state[name] for state in seen]).mean(0)
        torch.testing.assert_close(averaged.module.state_dict()[name], mean)


def test_a_checkpoint_brings_everything_back(tmp_path, randomized):
    model, other = _model(randomized), _model(randomized)
    _train_step(model)
    path = str(tmp_path / 'model.pth')

    save_checkpoint({'state_dict': model.state_dict(), 'meta': {}}, path)
    load_checkpoint(other, path, strict=True)

    torch.testing.assert_close(other.state_dict(), model.state_dict(), rtol=0, atol=0)
    x = torch.randn(2, 3, 6, 6)
    assert torch.equal(other.eval()(x), model.eval()(x))


def _saved(path, model):
    """Return a file as mmengine's runner writes it."""
    state = weights_to_cpu(get_state_dict(model))
    save_checkpoint({'state_dict': state, 'meta': {}}, str(path))
    return str(path)


@pytest.mark.parametrize('strict', [True, False])
@pytest.mark.parametrize('wrapped', [True, False])
def test_a_checkpoint_of_other_scopes_is_refused(wrapped, strict, tmp_path, randomized):
    other = nn.Sequential(nn.Conv2d(3, 4, 3), randomized(SwitchNorm(4, scopes=('ln', 'in', 'bn'))))
    model = _model(randomized)
    file = _saved(tmp_path / 'model.pth', nn.DataParallel(other) if wrapped else other)

    with pytest.raises(
        WeightsError, match=r"the SN layer 1 was trained with scopes=\('ln', 'in', "
    ):
        load_checkpoint(nn.DataParallel(model) if wrapped else model, file, strict=strict)


@pytest.mark.parametrize('strict', [True, False])
def test_a_wrong_number_of_control_parameters_is_refused(strict, tmp_path, randomized):
    other = nn.Sequential(nn.Conv2d(3, 4, 3), randomized(SwitchNorm(4, scopes=('in', 'ln'))))
    file = str(tmp_path / 'model.pth')
    save_checkpoint({'state_dict': dict(other.state_dict()), 'meta': {}}, file)

    with pytest.raises(WeightsError, match='the SN layer 1 was trained with 2 scopes'):
        load_checkpoint(_model(randomized), file, strict=strict)


def test_weights_of_batch_norm_give_a_warning(tmp_path, randomized):
    file = _saved(tmp_path / 'model.pth', nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)))

    with pytest.warns(UserWarning, match='SNPretrained'):
        load_checkpoint(_model(randomized), file)


class _Net(BaseModel):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 3), SwitchNorm(4), nn.Conv2d(4, 1, 1))

    def forward(self, inputs, mode='tensor'):
        y = self.layers(inputs)
        return {'loss': (y - inputs[:, :1, 1:-1, 1:-1]).square().mean()} if mode == 'loss' else y


class _Witness(Hook):
    """Keep the model's state after every iteration, before the average is updated."""

    priority = 'VERY_HIGH'

    def __init__(self):
        self.states = []

    def after_train_iter(self, runner, **_):
        self.states.append(_state(runner.model.layers))


def test_the_ema_hook_averages_it_while_a_runner_trains(tmp_path):
    images = [{'inputs': torch.randn(3, 6, 6)} for _ in range(8)]
    witness = _Witness()
    runner = Runner(
        _Net(),
        str(tmp_path),
        train_dataloader=DataLoader(images, batch_size=2),
        train_cfg={'by_epoch': False, 'max_iters': 4},
        optim_wrapper={'optimizer': {'type': 'SGD', 'lr': 0.5}},
        custom_hooks=[witness, {'type': 'EMAHook', 'momentum': 0.25}],
        default_hooks={'checkpoint': {'type': 'CheckpointHook', 'by_epoch': False, 'interval': 4}},
        experiment_name=tmp_path.name,
        log_level='ERROR',
    )

    runner.train()

    expected = copy.deepcopy(witness.states[0])
    for state in witness.states[1:]:
        for name in NORM:
            expected[name] = 0.75 * expected[name] + 0.25 * state[name]
    moved = (witness.states[0][name] != witness.states[-1][name] for name in NORM)
    assert all(difference.any() for difference in moved)
    saved = _Net()
    load_checkpoint(saved, str(tmp_path / 'iter_4.pth'), strict=True)
    for name in NORM:
        torch.testing.assert_close(saved.layers.state_dict()[name], expected[name])
    assert saved.layers[1].num_batches_tracked == 4
    file = torch.load(tmp_path / 'iter_4.pth', weights_only=False)
    settings = settings_of(saved.layers[1])
    assert recorded_settings(file['state_dict']) == {'layers.1': settings}
    assert recorded_settings(file['ema_state_dict']) == {'module.layers.1': settings}
