"""The weights of a checkpoint are found, bare or nested."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from sn_openmmlab.checkpoints.files.safe_loading import read_checkpoint
from sn_openmmlab.checkpoints.files.weights import find_weights, weights_for_mmengine
from sn_openmmlab.errors import UsageError


@pytest.mark.parametrize('name', ['fc.weight', 'weight'])
@pytest.mark.parametrize('nest', [dict, lambda **state: {'state_dict': state}])
def test_nested_tensors_are_refused(name: str, nest: Callable, tmp_path: Path) -> None:
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    torch.save(nest(**{'conv1.weight': torch.ones(1), name: nested}), tmp_path / 'nested.pth')
    with pytest.raises(UsageError, match=rf'^{name} is not one array, but a nested tensor\.$'):
        find_weights(read_checkpoint(tmp_path / 'nested.pth'))


@pytest.mark.parametrize('nest', [dict, lambda **state: {'state_dict': state, 'epoch': 3}])
def test_mmengine_takes_these_weights(nest: Callable) -> None:
    file = nest(**{'module.a.b.weight': torch.ones(2), 'c': torch.ones(1)})
    assert list(weights_for_mmengine(file)) == ['a.b.weight', 'c']
    for prefix in ('module.a', 'module.a.'):
        assert list(weights_for_mmengine(file, prefix)) == ['b.weight']


def test_records_of_the_layers_are_kept_under_their_new_names() -> None:
    state = torch.nn.ModuleDict({'a': torch.nn.BatchNorm2d(2)}).state_dict()
    assert weights_for_mmengine({'state_dict': state})._metadata['a'] == {'version': 2}
    assert weights_for_mmengine(state, 'a')._metadata == {}
    nested = torch.nn.ModuleDict({'net': torch.nn.ModuleDict({'a': torch.nn.BatchNorm2d(2)})})
    assert weights_for_mmengine(nested.state_dict(), 'net')._metadata['a'] == {'version': 2}
    assert find_weights({'model': state, 'epoch': 3})._metadata['a'] == {'version': 2}


def test_weights_that_mmengine_would_not_find_are_refused() -> None:
    with pytest.raises(UsageError, match=r"lie under 'net', where MMEngine does not look: name"):
        weights_for_mmengine({'net': {'a.weight': torch.ones(2)}, 'epoch': 3})
    with pytest.raises(UsageError, match=r'starts with b\.: their names are a\.weight\.'):
        weights_for_mmengine({'a.weight': torch.ones(2)}, 'b')
    assert weights_for_mmengine({}) == {}
