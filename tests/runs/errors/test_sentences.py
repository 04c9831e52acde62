"""What the config has wrong is a sentence; what breaks inside of a class keeps its traceback."""

import pytest
from mmcv.cnn import ConvModule
from mmengine.registry import HOOKS, MODELS
from torch import nn

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.errors.sentences import building


@pytest.mark.parametrize(
    ('model', 'said'),
    [
        (dict(type='AbsentModel'), 'AbsentModel is not in the'),
        (dict(type='Conv2d', in_channels=2, out_channels=2, kernel=1), "argument 'kernel'"),
        (dict(type='SN', num_features=64, scope=1), "argument 'scope'"),
        (dict(type='SN', num_features=64, scopes=('gn',), num_groups=48), 'set num_groups to a'),
        (dict(type='SN', num_features=64, num_ratio_groups=48), 'set num_ratio_groups to a'),
    ],
)
def test_mistake_of_the_config_is_one_sentence(model: dict, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught, building('what a.py describes'):
        MODELS.build(model)
    assert str(caught.value).startswith('what a.py describes cannot be built: ')
    assert '\n' not in str(caught.value)


def test_option_of_another_layer_is_one_sentence() -> None:
    with pytest.raises(UsageError, match="argument 'inplace'"), building('it'):
        ConvModule(2, 2, 1, act_cfg=dict(type='SN'))


@pytest.mark.parametrize(
    'hook',
    [
        dict(type='SparsifyHook', begin='18'),
        dict(type='SparsifyHook', begin=-1),
        dict(type='SparsifyHook', begin=1, by_epoch=3),
        dict(type='SparsifyHook', begn=1),
        dict(type='BatchAverageHook', num_batches=0),
        dict(type='BatchAverageHook', num_batches='9'),
        dict(type='BatchAverageHook', variance='median'),
        dict(type='BatchAverageHook', batch_norm=3),
    ],
)
def test_wrong_argument_of_a_hook_is_one_sentence(hook: dict) -> None:
    with pytest.raises(UsageError, match=r'^it cannot be built: .+\.$'), building('it'):
        HOOKS.build(hook)


def test_error_inside_a_class_passes_unchanged() -> None:
    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 'three')

    with pytest.raises(TypeError), building('it'):
        MODELS.build(dict(type=Broken))
