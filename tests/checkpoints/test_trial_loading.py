"""Loading is tried as MMEngine does it, and the module stays as it is."""

import torch
from mmengine.model import BaseModule
from torch import Tensor, nn

from sn_openmmlab.checkpoints.trial_loading import left_by_own_code, try_loading
from sn_openmmlab.layers.sparse import sparsify
from sn_openmmlab.layers.switch_norm import SwitchNorm


class Renaming(nn.Module):
    """Takes the weights of an older version, like MMDetection's two-stage detectors."""

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


class OwnCode(BaseModule):
    """Loads the weights that it was given, and draws random numbers."""

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


def test_sparse_weights_fill_a_dense_layer_and_leave_it_dense() -> None:
    sparse, dense = sparsify(SwitchNorm(4)), SwitchNorm(4)
    trial = try_loading(dense, sparse.state_dict())
    assert trial.layers[0].filled and not trial.unexpected and not trial.layers[0].missing
    assert not dense.is_sparse and 'mean_choice' not in dense.state_dict()
    chosen = sparsify(SwitchNorm(4, scopes=('in', 'bn')))
    chosen.choose(torch.tensor(1), torch.tensor(0))
    try_loading(chosen, sparsify(SwitchNorm(4, scopes=('in', 'bn'))).state_dict())
    assert (chosen.mean_choice.item(), chosen.used_scopes) == (1, ('in', 'bn'))
