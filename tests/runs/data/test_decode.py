"""Every file of a config is read once, and those that cannot be read are listed."""

from pathlib import Path

import pytest
from mmengine.registry import DefaultScope

from sn_openmmlab.runs.config import read_config
from sn_openmmlab.runs.data.decode import Reading, read_all
from tests.broken_data import TOOLBOXES, break_data, cut_short

LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')
# Images, and the label maps of the segmenter; those of validation and test are the same.
FILES = {'detection': 8 + 4, 'segmentation': 2 * (4 + 2), 'classification': 2 * (4 + 2)}


def _read(file: Path, **options: object) -> Reading:
    config = read_config(file, options)
    with DefaultScope.overwrite_default_scope(config.default_scope):
        return read_all(config, *LOADERS)


@pytest.mark.parametrize('toolbox', TOOLBOXES)
def test_file_that_ends_early_is_listed(
    toolbox: str, request: pytest.FixtureRequest, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    config, image = break_data(toolbox, request, tmp_path)
    read = _read(config)
    assert read.files == FILES[toolbox]
    assert read.faults == [f'{image} cannot be decoded: it ends early, is damaged or is no image']
    assert read.not_read == []
    # The progress is not in what a script reads.
    assert 'reading' not in capfd.readouterr().out


def test_label_map_that_ends_early_is_listed_by_worker_processes(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    config, image = break_data('segmentation', request, tmp_path)
    label_map = image.parents[1] / 'labels/val/0.png'
    cut_short(label_map)
    read = _read(config, **{'train_dataloader.num_workers': 2})
    assert [fault.split(' cannot')[0] for fault in read.faults] == [str(image), str(label_map)]


def test_data_that_cannot_be_read_here_are_named(segmentation_config: Path) -> None:
    options = {'val_dataloader.dataset.data_root': 's3://bucket/maps'}
    read = _read(segmentation_config, **options)
    assert read.not_read == [
        'BaseSegDataset in the val_dataloader, which cannot be built here, or names no local files'
    ]
    assert not read.faults
