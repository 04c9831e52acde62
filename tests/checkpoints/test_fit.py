"""An evaluation on weights that do not belong to the model is refused."""

import pytest
import torch
from torch import nn

from sn_openmmlab.checkpoints.fit import check_fit
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.switch_norm import SwitchNorm


def _net(norm):
    return nn.Sequential(nn.Conv2d(3, 4, 1), norm(4), nn.Conv2d(4, 4, 1), norm(4))


@pytest.mark.parametrize('norm', [SwitchNorm, nn.BatchNorm2d])
@pytest.mark.parametrize('nest', [lambda state: state, lambda state: {'state_dict': state}])
@pytest.mark.parametrize('prefix', ['', 'module.'])
def test_own_weights_fit(norm, nest, prefix):
    state = {prefix + name: value for name, value in _net(norm).state_dict().items()}
    check_fit(_net(norm), nest(state), 'own.pth')


def test_own_weights_fit_a_wrapped_model():
    wrapped = nn.ModuleDict({'module': _net(SwitchNorm)})
    check_fit(wrapped, _net(SwitchNorm).state_dict(), 'own.pth')


def test_batch_norm_weights_do_not_fit():
    with pytest.raises(UsageError, match=r'bn\.pth lacks the weights of 2 SwitchNorm .* as of 1'):
        check_fit(_net(SwitchNorm), _net(nn.BatchNorm2d).state_dict(), 'bn.pth')


@pytest.mark.parametrize('state', [{}, {'state_dict': {}}, {'fc.weight': torch.ones(1)}])
def test_foreign_weights_do_not_fit(state):
    with pytest.raises(UsageError, match=r'other\.pth holds none of the weights'):
        check_fit(_net(nn.BatchNorm2d), state, 'other.pth')
