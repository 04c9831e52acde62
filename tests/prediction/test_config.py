"""What the inferencers get of a config."""

from collections.abc import Callable
from pathlib import Path

import pytest
from mmcv.transforms import LoadImageFromFile
from mmengine.config import Config

from sn_openmmlab.errors import UsageError
from sn_openmmlab.prediction.config import inference_config
from sn_openmmlab.runs.config import read_config

LOADER = dict(type='LoadImageFromFile', color_type='color')


@pytest.fixture
def with_pipeline(detection_config: Path) -> Callable[[list], Config]:
    """Return a function that gives the tiny detector's config another pipeline for testing."""

    def change(pipeline: list) -> Config:
        config = read_config(detection_config)
        config.test_dataloader.dataset.pipeline = pipeline
        config.val_dataloader.dataset.pipeline = []
        return config

    return change


def _pipeline(config: Config) -> list:
    return inference_config(config, 'weights.pth').test_dataloader.dataset.pipeline


@pytest.mark.parametrize('kind', ['LoadImageFromFile', 'mmcv.LoadImageFromFile', LoadImageFromFile])
def test_transforms_have_plain_names(kind: object, with_pipeline: Callable) -> None:
    config = with_pipeline([{**LOADER, 'type': kind}, dict(type='PackDetInputs')])
    assert _pipeline(config) == [LOADER, dict(type='PackDetInputs')]
    assert config.test_dataloader.dataset.pipeline[0]['type'] == kind, 'the config changed'


def test_ground_truth_is_not_read(with_pipeline: Callable) -> None:
    # The second needs panopticapi, which MMDetection does not bring.
    loaders = [dict(type='LoadAnnotations'), dict(type='LoadPanopticAnnotations')]
    assert _pipeline(with_pipeline([LOADER, *loaders])) == [LOADER]


def test_dataset_in_a_wrapper_is_found(detection_config: Path) -> None:
    config = read_config(detection_config)
    dataset = config.test_dataloader.dataset
    config.test_dataloader.dataset = dict(type='ConcatDataset', datasets=[dataset, dataset])
    assert [step['type'] for step in _pipeline(config)] == [
        'LoadImageFromFile',
        'Resize',
        'PackDetInputs',
    ]


def test_validation_stands_in_for_a_test(detection_config: Path) -> None:
    config = read_config(detection_config)
    config.test_dataloader = None
    assert _pipeline(config)[0] == dict(type='LoadImageFromFile')


def test_config_that_reads_no_image_files_is_refused(with_pipeline: Callable) -> None:
    config = with_pipeline([dict(type='PackDetInputs')])
    with pytest.raises(UsageError, match='has no LoadImageFromFile in the pipeline of its test_d'):
        inference_config(config, 'weights.pth')


def test_no_other_weights_are_loaded(detection_config: Path) -> None:
    config = read_config(detection_config)
    config.model.pretrained = 'torchvision://resnet18'
    config.model.teacher_ckpt = 'https://example.org/teacher.pth'
    config.model.backbone.pretrained = True
    prepared = inference_config(config, 'weights.pth')
    assert prepared.load_from == 'weights.pth'
    assert (prepared.model.pretrained, prepared.model.teacher_ckpt) == (None, None)
    assert prepared.model.backbone.pretrained is False
    assert config.model.backbone.pretrained is True
