"""Label maps with values that are not classes are told before anything is built."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from mmengine.config import Config
from mmengine.registry import TRANSFORMS, DefaultScope

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.data.check import check_data

LOAD = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three images and label maps with the values 0 and 1, and 255 for no class."""
    for folder in ('images', 'labels'):
        (tmp_path / folder).mkdir()
    for i in range(3):
        (tmp_path / 'images' / f'{i}.jpg').touch()
        write(tmp_path, i, 0, 1, 255)
    return tmp_path


def write(root: Path, number: int, *values: int) -> None:
    cv2.imwrite(str(root / 'labels' / f'{number}.png'), np.uint8([values, values]))


def check(root: Path, model: dict | None = None, **changes: object) -> None:
    dataset = dict(
        type='BaseSegDataset',
        metainfo=dict(classes=('a', 'b')),
        data_root=str(root),
        data_prefix=dict(img_path='images', seg_map_path='labels'),
        pipeline=LOAD,
    )
    loader = dict(dataset={**dataset, **changes})
    config = dict(default_scope='mmseg', train_dataloader=loader, model=model or {})
    check_data(Config(config), 'train_dataloader')


@pytest.mark.parametrize('number', [0, 2])
def test_value_that_is_not_a_class_is_told(number: int, root: Path) -> None:
    check(root)
    write(root, number, 0, 2, 255)
    with pytest.raises(UsageError) as caught:
        check(root)
    assert (
        f'the label map {root}/labels/{number}.png that the train_dataloader of the config reads '
        'has the value 2, but the dataset has 2 classes, 0 to 1: correct'
    ) in str(caught.value)


def test_default_scope_of_another_toolbox_hides_nothing(root: Path) -> None:
    write(root, 0, 0, 2, 255)
    with DefaultScope.overwrite_default_scope('mmdet'), pytest.raises(UsageError, match='value 2'):
        check(root)


def test_values_are_read_as_the_dataset_reads_them(root: Path) -> None:
    for i in range(3):
        write(root, i, 0, 1, 2)
    check(root, reduce_zero_label=True)
    with pytest.raises(UsageError, match='has the value 2'):
        check(root, reduce_zero_label=False)


def test_value_that_the_config_ignores_is_no_mistake(root: Path) -> None:
    write(root, 0, 0, 1, 7)
    check(root, ignore_index=7)
    check(root, model=dict(decode_head=dict(ignore_index=7)))
    with pytest.raises(UsageError, match='has the value 7'):
        check(root, model=dict(decode_head=dict(ignore_index=8)))


@pytest.mark.parametrize(
    'changes', [dict(metainfo=dict(classes=None)), dict(pipeline=LOAD[:1])], ids=['names', 'maps']
)
def test_dataset_without_names_or_maps_is_not_checked(changes: dict, root: Path) -> None:
    write(root, 0, 9)
    check(root, **changes)


def test_maps_without_a_class_are_a_warning(root: Path, capsys: pytest.CaptureFixture) -> None:
    write(root, 0, 255, 255)
    check(root)
    assert 'neither the first' not in capsys.readouterr().err
    write(root, 2, 255, 255)
    check(root)
    assert 'neither the first nor the last label map' in capsys.readouterr().err


def test_map_without_an_image_is_a_warning(root: Path, capsys: pytest.CaptureFixture) -> None:
    check(root)
    assert 'have no image' not in capsys.readouterr().err
    write(root, 7, 0, 1)
    check(root)
    assert f'the first is {root}/labels/7.png' in capsys.readouterr().err


@pytest.mark.parametrize(
    'palette', [[[0, 0, 0]], [[0, 0], [9, 9]], [[0, 0, 300], [9, 9, 9]], 'ab', [[0, 0, 0.5]] * 2]
)
def test_palette_has_a_colour_for_each_class(palette: object, root: Path) -> None:
    with pytest.raises(UsageError, match='must have a colour for each of the 2 classes'):
        check(root, metainfo=dict(classes=('a', 'b'), palette=palette))


def test_steps_of_the_user_may_change_the_values(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class HalveLabels:
        def __call__(self, results: dict) -> dict:
            return results

    monkeypatch.setitem(TRANSFORMS.module_dict, 'HalveLabels', HalveLabels)
    write(root, 0, 0, 2, 255)
    with pytest.raises(UsageError, match='value 2'):
        check(root)
    check(root, pipeline=[*LOAD, dict(type='HalveLabels')])
