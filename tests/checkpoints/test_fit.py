"""Which layers a file fills is counted and named."""

import pytest
import torch
from mmengine.runner.checkpoint import load_state_dict
from torch import nn

from sn_openmmlab.checkpoints.fit import Fit
from sn_openmmlab.layers.switch_norm import SwitchNorm


def test_names_are_those_that_mmengine_logs(
    log: pytest.LogCaptureFixture,
) -> None:
    source = nn.ModuleDict({'a': nn.Linear(2, 3), 'b': nn.Conv2d(3, 4, 1), 'c': nn.Linear(1, 1)})
    module = nn.ModuleDict({'a': nn.Linear(2, 5), 'b': nn.Conv2d(3, 4, 1), 'd': SwitchNorm(4)})
    fit = Fit(module, source.state_dict())
    assert fit.misfits == {'a.weight': ((3, 2), (5, 2)), 'a.bias': ((3,), (5,))}
    assert fit.unexpected == ['c.weight', 'c.bias']
    assert fit.unfilled == ['d']
    load_state_dict(module, source.state_dict(), logger='current')
    assert 'unexpected key in source state_dict: c.weight, c.bias\n' in log.text
    missing = [name for name in fit.missing if 'num_batches' not in name]
    assert f'missing keys in source state_dict: {", ".join(missing)}\n' in log.text
    assert log.text.count('size mismatch') == len(fit.misfits)


def test_line_counts_by_kind_and_names_what_is_left() -> None:
    module = nn.ModuleDict(
        {
            'conv': nn.Conv2d(3, 4, 1),
            'sn': SwitchNorm(4),
            'bn': nn.BatchNorm2d(4),
            'fc': nn.Linear(4, 9),
            'words': nn.Embedding(3, 4),
        }
    )
    state = dict(module.state_dict())
    assert Fit(module, state).line() == (
        '1 of 1 SN layers, 1 of 1 other norms and 2 of 2 convolutions and linear layers'
    )
    del state['sn.running_var']
    state['fc.weight'] = torch.ones(7, 4)
    assert Fit(module, state).line() == (
        '0 of 1 SN layers, 1 of 1 other norms and 1 of 2 convolutions and linear layers; not '
        'sn (not in the file), fc (another shape)'
    )
    assert Fit(nn.ReLU(), state).line() == 'no layer'


def test_counters_and_names_that_share_a_layer_do_not_matter() -> None:
    norm = SwitchNorm(4)
    module = nn.ModuleDict({'a': norm, 'b': norm})
    state = {f'b.{name}': v for name, v in norm.state_dict().items() if 'num_batches' not in name}
    fit = Fit(module, state)
    assert fit.unfilled == []
    assert len(fit.switch_norms) == 1


def test_module_gets_nothing_where_torch_makes_up_a_counter() -> None:
    module = nn.ModuleDict({'bn': nn.BatchNorm2d(4)})
    assert Fit(module, {'other.weight': torch.ones(1)}).fills_nothing
    assert not Fit(module, {'bn.weight': torch.ones(4)}).fills_nothing
    assert not Fit(nn.ReLU(), {}).fills_nothing
