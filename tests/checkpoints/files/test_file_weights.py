"""The weights of a checkpoint are arrays by name, wherever they lie."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from sn_openmmlab.checkpoints.files.safe_loading import read_checkpoint
from sn_openmmlab.checkpoints.files.weights import find_weights
from sn_openmmlab.errors import UsageError


@pytest.mark.parametrize('name', ['fc.weight', 'weight'])
@pytest.mark.parametrize('nest', [dict, lambda **state: {'state_dict': state}])
def test_nested_tensors_are_refused(name: str, nest: Callable, tmp_path: Path) -> None:
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    torch.save(nest(**{'conv1.weight': torch.ones(1), name: nested}), tmp_path / 'nested.pth')
    with pytest.raises(UsageError, match=rf'^{name} is not one array, but a nested tensor\.$'):
        find_weights(read_checkpoint(tmp_path / 'nested.pth'))
