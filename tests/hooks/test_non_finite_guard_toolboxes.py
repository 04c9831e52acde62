"""The guard in trainings of the three toolboxes names the layer and the image."""

from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner

from sn_openmmlab.errors import UsageError

# Of each toolbox, a layer that sees the images of the batch and the folder of the images.
LAYERS = {
    'detection': ('neck.lateral_convs.1', 'images'),
    'segmentation': ('decode_head.convs.0', 'train'),
    'classification': ('backbone.layer2', 'train'),
}


class SpoilSecondImage(Hook):
    """Make the output of a layer infinite for the second image of the second batch."""

    def __init__(self, layer: str) -> None:
        self.layer = layer
        self.paths: list[str] = []

    def before_train(self, runner: Runner) -> None:
        runner.model.get_submodule(self.layer).register_forward_hook(self._spoil)

    def before_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None) -> None:
        self.paths.append(data_batch['data_samples'][1].img_path)

    def _spoil(self, layer: torch.nn.Module, args: tuple, output: torch.Tensor) -> torch.Tensor:
        scale = torch.ones(len(output), *[1] * (output.ndim - 1))
        scale[1] = torch.inf if len(self.paths) == 2 else 1
        return output * scale


@pytest.mark.parametrize('toolbox', LAYERS)
def test_layer_and_image_are_named(
    toolbox: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer, folder = LAYERS[toolbox]
    config = Config.fromfile(request.getfixturevalue(f'{toolbox}_config'))
    config.work_dir, config.experiment_name = str(tmp_path), f'{toolbox} {tmp_path.name}'
    config.train_cfg = dict(type='IterBasedTrainLoop', max_iters=3)
    config.train_dataloader.sampler = dict(type='InfiniteSampler')
    config.param_scheduler = None
    for name in ('val_dataloader', 'val_evaluator', 'val_cfg'):
        config[name] = None
    config.default_hooks.checkpoint = dict(type='CheckpointHook', by_epoch=False, interval=5)
    # As `--cfg-options default_hooks.guard.type=NonFiniteGuardHook` adds it.
    config.merge_from_dict({'default_hooks.guard.type': 'NonFiniteGuardHook'})
    spoil = SpoilSecondImage(layer)
    monkeypatch.setattr('mmengine.runner.runner.collect_env', dict)

    runner = Runner.from_cfg(config)
    runner.register_hook(spoil)
    with pytest.raises(UsageError) as caught:
        runner.train()

    said = str(caught.value)
    assert said.startswith('the training stops at iteration 2, since the loss')
    assert f'{layer} (' in said and 'is the first layer whose output is not' in said
    assert f'/{folder}/' in spoil.paths[1]
    assert f'on the image {spoil.paths[1]}; {tmp_path} has no good checkpoint' in said
