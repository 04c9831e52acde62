"""The config of docs/guides/own_label_maps.md works as the page says, and so do its mistakes."""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope

from sn_openmmlab.analysis.norms import norm_layers
from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.data.check import check_data

pytest.importorskip('mmseg')

from mmseg.registry import DATASETS, METRICS, MODELS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / 'docs/guides/own_label_maps.md').read_text()
(BLOCK,) = re.findall(r'```python\n(.*?)```', PAGE, re.DOTALL)
CLASSES = ('background', 'road', 'car')
PICTURES = {'train': 3, 'val': 2}


@pytest.fixture(autouse=True)
def mmseg_scope() -> None:
    """Set the toolbox's scope."""
    init_default_scope('mmseg')


@pytest.fixture(scope='module')
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data set laid out as the page says, whose maps have all classes and 255."""
    root = tmp_path_factory.mktemp('roads')
    labels = np.zeros((48, 64), np.uint8)
    labels[:, 16:32], labels[:, 32:48], labels[:, 48:] = 1, 2, 255
    for split, count in PICTURES.items():
        for folder in ('images', 'labels'):
            (root / folder / split).mkdir(parents=True)
        for i in range(count):
            cv2.imwrite(str(root / 'images' / split / f'{i}.jpg'), np.zeros((48, 64, 3), np.uint8))
            cv2.imwrite(str(root / 'labels' / split / f'{i}.png'), labels)
    return root


@pytest.fixture
def read(tmp_path: Path, data: Path) -> Callable[..., Config]:
    """Return a function that reads the page's config, with some text replaced, on the data set."""

    def read_config(changes: dict[str, str] | None = None) -> Config:
        base = re.search("_base_ = '(.*)'", BLOCK)[1]
        # Where the page says to save it, and the data.
        text = BLOCK.replace(base, str((ROOT / 'roads' / base).resolve()))
        text = text.replace('data/roads', str(data))
        for old, new in (changes or {}).items():
            assert text.count(old) == 1
            text = text.replace(old, new)
        file = tmp_path / 'roads.py'
        file.write_text(text)
        return Config.fromfile(file)

    return read_config


def train_map(config: Config) -> list[int]:
    """Return the numbers in the first label map as training reads it, without augmentation."""
    settings = config.train_dataloader.dataset
    settings.pipeline = [*settings.pipeline[:2], dict(type='PackSegInputs')]
    dataset = DATASETS.build(settings)
    return np.unique(dataset[0]['data_samples'].gt_sem_seg.data).tolist()


def test_every_name_has_its_row() -> None:
    rows = ''.join(line.split('|')[1] for line in PAGE.splitlines() if line.startswith('| `'))
    names = re.findall(r'(?:^|[(\s])(\w+)=?(?= = |=)', BLOCK)
    given = {'_base_', 'metainfo', 'common', 'dataset', 'data_prefix', 'decode_head'}
    given |= {'auxiliary_head', 'model', 'img_path', 'seg_map_path', 'num_classes'}
    for name in set(names) - given:
        assert name.endswith('dataloader') or f'`{name}`' in rows, name


def test_data_sets_hold_the_pictures_and_classes(read: Callable[..., Config]) -> None:
    config = read()
    for split, count in {**PICTURES, 'test': PICTURES['val']}.items():
        dataset = DATASETS.build(config[f'{split}_dataloader'].dataset)
        assert len(dataset) == count
        assert dataset.metainfo['classes'] == CLASSES
    assert train_map(config) == [0, 1, 2, 255]
    METRICS.build(config.val_evaluator)
    check_data(config, 'train_dataloader', 'val_dataloader', 'test_dataloader')


def test_model_trains_a_step_with_the_classes_and_the_norms(read: Callable[..., Config]) -> None:
    config = read()
    config.model.backbone.init_cfg = None
    config.model.data_preprocessor.size = (32, 32)
    model = MODELS.build(config.model).train()
    heads = (model.decode_head, model.auxiliary_head)
    assert [head.num_classes for head in heads] == [3, 3]
    assert {layer.kind for layer in norm_layers(model)} == {'SN'}
    losses = step(model, read())
    assert all(torch.isfinite(value).all() for value in losses.values())


def step(model: torch.nn.Module, config: Config) -> dict[str, torch.Tensor]:
    """Return the losses of a batch of two images of the training set, as crops of 32x32."""
    settings = config.train_dataloader.dataset
    for transform in settings.pipeline:
        if transform.type == 'RandomResize':
            transform.scale = (32, 32)
        if transform.type == 'RandomCrop':
            transform.crop_size = (32, 32)
    items = [DATASETS.build(settings)[i] for i in range(2)]
    batch = {key: [item[key] for item in items] for key in ('inputs', 'data_samples')}
    batch = model.data_preprocessor(batch, training=True)
    losses = model(**batch, mode='loss')
    sum(value for name, value in losses.items() if 'loss' in name).backward()
    return losses


def test_a_number_beyond_the_names_stops_the_training(read: Callable[..., Config]) -> None:
    scores = torch.zeros(1, 3, 2, 2)
    loss = MODELS.build(read().model.decode_head.loss_decode)
    with pytest.raises(IndexError) as caught:
        loss(scores, torch.full((1, 2, 2), 3))
    assert f'`IndexError: {caught.value}`' in PAGE


def test_without_its_type_the_data_set_is_ade20k(read: Callable[..., Config]) -> None:
    config = read({"type='BaseSegDataset', ": ''})
    assert config.train_dataloader.dataset.type == 'ADE20KDataset'
    with pytest.raises(ValueError) as caught:
        train_map(config)
    assert f'`ValueError: {re.sub(r"[(].*?[)]", "(…)", str(caught.value))}`' in PAGE


def test_maps_that_count_from_1(read: Callable[..., Config]) -> None:
    assert '`reduce_zero_label=True`' in PAGE
    config = read({"type='BaseSegDataset', ": "type='BaseSegDataset', reduce_zero_label=True, "})
    assert train_map(config) == [0, 1, 255]


def test_wrong_suffixes_are_named(read: Callable[..., Config]) -> None:
    with pytest.raises(UsageError, match=r'label map, the first is .*tif'):
        check_data(read({"seg_map_suffix='.png'": "seg_map_suffix='.tif'"}), 'train_dataloader')
    with pytest.raises(UsageError, match=r'finds no (picture|image)'):
        check_data(read({"img_suffix='.jpg'": "img_suffix='.tif'"}), 'train_dataloader')


def test_without_the_number_of_classes_the_heads_keep_150(read: Callable[..., Config]) -> None:
    config = read({'model = dict(': 'unused = dict('})
    assert config.model.decode_head.num_classes == 150
    assert "ADE20K's 150 classes" in PAGE


def test_schedule(read: Callable[..., Config]) -> None:
    config = read()
    assert config.train_cfg.max_iters == 160000
    assert config.auto_scale_lr.base_batch_size == 16
    assert config.train_dataloader.batch_size == 4
    assert config.param_scheduler[0].end == 160000
    assert config.model.backbone.init_cfg.type == 'SNPretrained'
    assert config.model.backbone.init_cfg.checkpoint == 'checkpoints/resnet50_sn.pth'


def test_the_command_prints_the_numbers_of_a_map(data: Path) -> None:
    (command,) = re.findall('^python -c (.*)$', PAGE, re.MULTILINE)
    (code,) = shlex.split(command)
    code = code.replace('data/roads', str(data)).replace('NAME', '0')
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.stdout == '[  0   1   2 255]\n'
