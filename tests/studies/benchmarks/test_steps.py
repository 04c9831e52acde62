"""The training steps: one norm in the place of another, and a step that changes the weights."""

import pytest
import torch
from torch import nn

from sn_openmmlab.layers.switch_norm import SwitchNorm


@pytest.fixture
def steps_module():
    pytest.importorskip('mmdet')
    from studies.benchmarks import steps

    return steps


def test_norm_replaces_every_sn(steps_module):
    norm = {'type': 'GN', 'num_groups': 32}
    config = {'a': {'type': 'SN'}, 'b': [{'norm_cfg': {'type': 'SN'}}, 3], 'c': {'type': 'BN'}}

    changed = steps_module.with_norm(config, norm)

    assert changed == {'a': norm, 'b': [{'norm_cfg': norm}, 3], 'c': {'type': 'BN'}}
    assert config['a'] == {'type': 'SN'}


def test_the_same_detector_with_each_norm_takes_a_step(steps_module, repo, monkeypatch):
    from sn_openmmlab.runs.config import read_config

    built = []
    build = steps_module._build
    monkeypatch.setattr(
        steps_module, '_build', lambda *args: built.append(build(*args)) or built[-1]
    )
    config = read_config(repo / 'configs/_base_/faster-rcnn_r18_fpn_sn-all_scratch.py')

    steps = steps_module.training_steps(config, (64, 64), torch.device('cpu'))

    kinds = {'BN': nn.BatchNorm2d, 'GN': nn.GroupNorm, 'SN': SwitchNorm}
    for name, model in zip(steps, built, strict=True):
        found = {
            type(module)
            for module in model.modules()
            if isinstance(module, (*kinds.values(), nn.InstanceNorm2d))
        }
        assert found == {kinds[name]}
    before = built[2].backbone.conv1.weight.clone()
    steps['SN']()
    assert not torch.equal(before, built[2].backbone.conv1.weight)


@pytest.mark.parametrize('norm', [nn.BatchNorm2d(64), nn.GroupNorm(8, 64), SwitchNorm(64)])
def test_the_share_of_the_norm_in_forward_and_backward(steps_module, norm):
    # The norm does nearly all the work.
    x = torch.randn(8, 64, 64, 64, requires_grad=True)
    dy = torch.randn_like(x)

    share = steps_module.norm_share(lambda: torch.autograd.grad(norm(x), x, dy))

    assert 0.5 < share <= 1
