"""What a load would do is found as mmengine does it, and nothing is done."""

import torch
from mmengine.model import BaseModule
from mmengine.runner.checkpoint import load_state_dict
from torch import Tensor, nn

from sn_openmmlab.checkpoints.fit import Fit
from sn_openmmlab.checkpoints.trial_loading import left_by_own_code, try_loading
from sn_openmmlab.layers.switch_norm import SwitchNorm


class Renaming(nn.Module):
    """Takes the weights of an older version, as MMDetection's two-stage detectors do."""

    def __init__(self) -> None:
        super().__init__()
        self.rpn = nn.ModuleDict({'conv': nn.Conv2d(3, 4, 1), 'sn': SwitchNorm(4)})

    def _load_from_state_dict(self, state: dict[str, Tensor], prefix: str, *args: object) -> None:
        for name in [name for name in state if name.startswith(f'{prefix}bbox.')]:
            state[name.replace('bbox.', 'rpn.', 1)] = state.pop(name)
        super()._load_from_state_dict(state, prefix, *args)


def states(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def test_names_that_a_module_changes_are_followed_and_nothing_is_loaded() -> None:
    old = {name.replace('rpn.', 'bbox.'): v + 1 for name, v in states(Renaming()).items()}
    names = list(old)
    module = Renaming()
    parameters, before = list(module.parameters()), states(module)
    trial = try_loading(module, old)
    assert [(layer.name, layer.filled) for layer in trial.layers] == [
        ('rpn.conv', True),
        ('rpn.sn', True),
    ]
    assert list(old) == names
    assert all(a is b for a, b in zip(parameters, module.parameters(), strict=True))
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())


def test_what_is_missing_unfit_and_unexpected_is_what_mmengine_says(log) -> None:
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
    state = states(module)
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
    state = {f'b.{name}': v for name, v in states(norm).items() if 'num_batches' not in name}
    fit = Fit(module, state)
    assert fit.unfilled == []
    assert len(fit.switch_norms) == 1


def test_module_gets_nothing_where_torch_makes_up_a_counter() -> None:
    module = nn.ModuleDict({'bn': nn.BatchNorm2d(4)})
    assert Fit(module, {'other.weight': torch.ones(1)}).fills_nothing
    assert not Fit(module, {'bn.weight': torch.ones(4)}).fills_nothing
    assert not Fit(nn.ReLU(), {}).fills_nothing


class OwnCode(BaseModule):
    """Loads what it was given, and draws random numbers."""

    def __init__(self, weights: dict[str, Tensor]) -> None:
        super().__init__()
        self.a, self.b = SwitchNorm(4), SwitchNorm(4)
        self.weights = weights

    def init_weights(self) -> None:
        nn.init.normal_(self.a.weight)
        self.load_state_dict(self.weights, strict=False)


def test_own_code_is_tried_on_a_copy() -> None:
    module = OwnCode({'a.mean_weight': torch.zeros(3)})
    before = states(module)
    torch.manual_seed(0)
    assert left_by_own_code(module) == ['b']
    drawn = torch.rand(1)
    torch.manual_seed(0)
    assert drawn == torch.rand(1)
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
