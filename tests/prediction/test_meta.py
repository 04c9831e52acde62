"""Where the names and colours of the classes come from."""

from pathlib import Path

import pytest
from mmengine.config import Config
from torch import nn

from sn_openmmlab.prediction.config import inference_config
from sn_openmmlab.prediction.meta import dataset_meta
from sn_openmmlab.runs.config import read_config


class Head(nn.Module):
    """A head that tells how many classes it has."""

    num_classes = 3


@pytest.fixture
def config(segmentation_config: Path) -> Config:
    """Return the config of the tiny segmenter: two classes in its dataset, with a palette."""
    return inference_config(read_config(segmentation_config), 'weights.pth')


def _meta(config: Config, **meta: object) -> dict:
    return dataset_meta({'meta': meta}, nn.Sequential(nn.Identity(), Head()), config)


def test_checkpoint_comes_first(config: Config) -> None:
    palette = [(1, 2, 3), (4, 5, 6), (7, 8, 9)]
    meta = dict(classes=('x', 'y', 'z'), palette=[list(color) for color in palette])
    assert _meta(config, dataset_meta=meta) == {'classes': ['x', 'y', 'z'], 'palette': palette}
    assert _meta(config, CLASSES=['x', 'y', 'z'], PALETTE=palette)['classes'] == ['x', 'y', 'z']


def test_dataset_of_the_config_comes_second(config: Config) -> None:
    for meta in ({}, dict(dataset_meta={}), dict(epoch=3)):
        found = _meta(config, **meta)
        assert found['classes'] == ['bright', 'dark', 'class 2']
        assert found['palette'][:2] == [(255, 255, 0), (0, 0, 128)]
        assert len(found['palette']) == 3


def test_classes_without_names_have_numbers(config: Config) -> None:
    config.test_dataloader.dataset.type = 'Unknown'
    found = _meta(config)
    assert found['classes'] == ['class 0', 'class 1', 'class 2']
    assert found == _meta(config), 'the colours change'
    assert len(set(found['palette'])) == 3
