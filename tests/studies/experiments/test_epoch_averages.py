"""Batch average after every epoch is measured once, from the checkpoints."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

pytest.importorskip('mmpretrain')

from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmengine.utils import import_modules_from_strings
from mmpretrain.registry import MODELS

from sn_openmmlab.layers.switch_norm import SwitchNorm
from studies.experiments import epoch_averages
from studies.experiments.cifar_images import CLASSES, CifarImages
from studies.experiments.claims_runs import training_config
from studies.experiments.epoch_averages import read_averages
from studies.experiments.plan import Run

BATCH = 10


@pytest.fixture
def config(tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """The config of the claims on two images of noise of each class."""
    noise = np.random.default_rng(0)
    for name in CLASSES:
        (tmp_path / 'images' / name).mkdir(parents=True)
        for i in range(2):
            image = noise.integers(0, 255, (32, 32, 3), dtype=np.uint8)
            cv2.imwrite(str(tmp_path / f'images/{name}/{i}.jpg'), image)
    monkeypatch.chdir(repo)
    config = training_config('sn', 32)
    config.train_dataloader.batch_size = BATCH
    for loader in (config.train_dataloader, config.val_dataloader):
        loader.dataset.update(root=str(tmp_path / 'images'), augment=False)
    return config


def make_run(config: Config, tmp_path: Path, weights: list[dict]) -> Run:
    """Write a work folder with a checkpoint after each epoch."""
    file, folder = tmp_path / 'sn_b32.py', tmp_path / 'work/sn_b32_s0'
    config.dump(file)
    (folder / '20260101_000000/vis_data').mkdir(parents=True)
    lines = [{'accuracy/top1': 10.0 * i, 'step': i} for i, _ in enumerate(weights, 1)]
    log = folder / '20260101_000000/vis_data/scalars.json'
    log.write_text('\n'.join(map(json.dumps, [{'loss': 1.0, 'step': 1}, *lines])))
    for i, state in enumerate(weights, 1):
        torch.save({'state_dict': state, 'meta': {}}, folder / f'epoch_{i}.pth')
    (folder / 'last_checkpoint').write_text(f'epoch_{len(weights)}.pth')
    config.dump(folder / file.name)
    return Run('sn', 32, 0, str(file), {})


def accuracy(model: torch.nn.Module, images: CifarImages) -> float:
    """Return the accuracy with SN by the averages of two batches that hold all images."""
    whole = images.__getitems__(list(range(20)))
    x = model.data_preprocessor(whole)['inputs']
    layers = [layer for layer in model.modules() if isinstance(layer, SwitchNorm)]
    for layer in layers:
        layer.momentum = None
        layer.reset_running_stats()
    with torch.no_grad():
        model.train()(x)
        model.eval()
        found = model(x, mode='predict', data_samples=whole['data_samples'])
    right = [sample.pred_label == sample.gt_label for sample in found]
    return 100 * float(torch.tensor(right).float().mean())


def test_accuracy_is_that_of_the_averages(config: Config, tmp_path: Path) -> None:
    """One batch of all images: its moments are the averages."""
    config.train_dataloader.batch_size = 20
    config.model.backbone.norm_cfg.gpus = 1
    import_modules_from_strings(config.custom_imports.imports)
    init_default_scope('mmpretrain')
    models = []
    for seed in range(2):
        torch.manual_seed(seed)
        models.append(MODELS.build({**config.model, 'data_preprocessor': config.data_preprocessor}))
    # copies, since measuring below moves the statistics
    states = [{k: v.clone() for k, v in model.state_dict().items()} for model in models]
    run = make_run(config, tmp_path, states)
    record = read_averages(run, tmp_path / 'work')
    images = CifarImages(str(tmp_path / 'images'))
    expected = [accuracy(model, images) for model in models]
    assert record.metrics['batch average/accuracy/top1'] == pytest.approx(expected)
    assert record.metrics['moving 0.1/accuracy/top1'] == [10.0, 20.0]


def test_measured_values_are_kept(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_modules_from_strings(config.custom_imports.imports)
    init_default_scope('mmpretrain')
    state = MODELS.build(config.model).state_dict()
    run = make_run(config, tmp_path, [state])
    monkeypatch.setattr(epoch_averages, '_measure', lambda *_: [12.5])
    for _ in range(2):
        record = read_averages(run, tmp_path / 'work')
        assert record.metrics['batch average/accuracy/top1'] == [12.5]
        monkeypatch.setattr(epoch_averages, '_measure', lambda *_: pytest.fail('measured again'))
