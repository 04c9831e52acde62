"""A loading step names the file that it cannot read, or skips it."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mmengine.config import ConfigDict
from mmengine.registry import TRANSFORMS, DefaultScope

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.data import checked_loading
from sn_openmmlab.runs.data.checked_loading import CheckedLoading, with_checked_loading
from tests.broken_data import cut_short

LOAD = dict(type='LoadImageFromFile')


@pytest.fixture(autouse=True)
def scope() -> Any:
    pytest.importorskip('mmdet')
    with DefaultScope.overwrite_default_scope('mmdet'):
        yield


@pytest.fixture
def image(tmp_path: Path) -> Path:
    cv2 = pytest.importorskip('cv2')
    file = tmp_path / 'image with spaces, ä.jpg'
    noise = np.random.default_rng(0).integers(0, 256, (40, 30, 3), dtype=np.uint8)
    file.write_bytes(cv2.imencode('.jpg', noise)[1].tobytes())
    return file


def _load(file: object, skip: bool = False, **step: Any) -> dict | None:
    transform = TRANSFORMS.build(dict(type='CheckedLoading', step={**LOAD, **step}, skip=skip))
    return transform(dict(img_path=str(file)))


def test_good_file_is_loaded_as_without(image: Path) -> None:
    plain = TRANSFORMS.build(LOAD)(dict(img_path=str(image)))
    checked = _load(image)
    assert checked.keys() == plain.keys()
    np.testing.assert_array_equal(checked['img'], plain['img'])


@pytest.mark.parametrize('backend', ['cv2', 'pillow'])
def test_file_that_ends_early_is_named(backend: str, image: Path) -> None:
    cut_short(image)
    with pytest.raises(UsageError) as caught:
        _load(image, imdecode_backend=backend)
    assert str(caught.value).startswith(
        f'{image} cannot be decoded: it ends early, is damaged or is no image: replace the file'
    )
    assert '--bad-images skip' in str(caught.value)
    assert '\n' not in str(caught.value)


def test_other_faults_are_told_apart(image: Path, tmp_path: Path) -> None:
    for file, fault in (
        (tmp_path / 'absent.jpg', 'does not exist'),
        (tmp_path, 'cannot be read (Is a directory)'),
    ):
        with pytest.raises(UsageError) as caught:
            _load(file)
        assert str(caught.value).startswith(f'{file} {fault}: ')
    with pytest.raises(UsageError, match=r'cannot be read .*backend: gpu is not supported'):
        _load(image, imdecode_backend='gpu')
    image.write_bytes(b'')
    with pytest.raises(UsageError, match='cannot be'):
        _load(image)
    image.write_text('this is text')
    with pytest.raises(UsageError, match='cannot be decoded'):
        _load(image)


def test_skipped_file_is_none_with_one_warning(image: Path, log: pytest.LogCaptureFixture) -> None:
    cut_short(image)
    transform = CheckedLoading(LOAD, skip=True)
    # As in a worker process that is started anew.
    transform = pickle.loads(pickle.dumps(transform))
    for _ in range(3):
        assert transform(dict(img_path=str(image))) is None
    (record,) = [record for record in log.records if record.levelname == 'WARNING']
    assert record.getMessage().startswith(f'{image} cannot be decoded')
    assert record.getMessage().endswith('; another image takes its place.')


def test_many_bad_files_in_a_row_are_not_skipped(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checked_loading, '_MOST_IN_A_ROW', 3)
    bad = image.with_name('bad.jpg')
    bad.write_text('text')
    transform = CheckedLoading(LOAD, skip=True)
    for file in (bad, bad, image, bad, bad):
        transform(dict(img_path=str(file)))
    with pytest.raises(UsageError, match=r'3 images in a row cannot be read: .*bad\.jpg cannot'):
        transform(dict(img_path=str(bad)))


def test_every_loading_step_of_a_config_is_checked_and_no_other() -> None:
    load = ConfigDict(LOAD)
    dataset = ConfigDict(
        type='MultiImageMixDataset',
        dataset=dict(
            type='CocoDataset',
            pipeline=[load, dict(type='mmdet.LoadAnnotations', with_seg=True), dict(type='Resize')],
        ),
        pipeline=[dict(type='Mosaic'), dict(type='TestTimeAug', transforms=[[load]])],
    )
    before = dataset.to_dict()
    changed = with_checked_loading(dataset, skip=True)
    assert dataset.to_dict() == before
    checked = dict(type='CheckedLoading', skip=True)
    assert changed.to_dict() == dict(
        type='MultiImageMixDataset',
        dataset=dict(
            type='CocoDataset',
            pipeline=[
                dict(checked, step=LOAD),
                dict(checked, step=dict(type='mmdet.LoadAnnotations', with_seg=True)),
                dict(type='Resize'),
            ],
        ),
        pipeline=[
            dict(type='Mosaic'),
            dict(type='TestTimeAug', transforms=[[dict(checked, step=LOAD)]]),
        ],
    )
    assert isinstance(changed.dataset.pipeline[0], ConfigDict)


def test_own_choice_of_a_config_stays() -> None:
    own = dict(type='CheckedLoading', step=LOAD, skip=True)
    assert with_checked_loading([own, LOAD], skip=False) == [
        own,
        dict(type='CheckedLoading', step=LOAD, skip=False),
    ]


def test_missing_file_is_dropped_where_the_step_says_so(image: Path) -> None:
    absent = image.with_name('absent.jpg')
    assert _load(absent, ignore_empty=True) is None
    # But the step does not drop what its decoder refuses.
    cut_short(image)
    with pytest.raises(UsageError, match='cannot be decoded'):
        _load(image, ignore_empty=True)


def test_step_without_a_file_is_left_alone() -> None:
    class Fails:
        def __call__(self, results: dict) -> dict:
            raise ZeroDivisionError

    transform = CheckedLoading(dict(type='LoadAnnotations', with_bbox=True))
    transform.step = Fails()
    with pytest.raises(ZeroDivisionError):
        transform(dict(img_path='a.jpg'))


def test_wrong_argument_is_an_error() -> None:
    with pytest.raises(TypeError, match='skip must be True or False'):
        CheckedLoading(LOAD, skip='no')


def test_other_size_than_annotated_is_one_warning(
    image: Path, log: pytest.LogCaptureFixture
) -> None:
    transform = CheckedLoading(LOAD)
    transform(dict(img_path=str(image), width=30, height=40))
    assert 'annotation file' not in log.text
    for _ in range(2):
        transform(dict(img_path=str(image), width=40, height=30))
    said = f'{image} has 30 × 40 pixels, but 40 × 30 in its annotation file'
    assert log.text.count(said) == 1


def test_label_map_of_another_size_is_named(image: Path, tmp_path: Path) -> None:
    pytest.importorskip('mmseg')
    import cv2

    file = tmp_path / 'map.png'
    cv2.imwrite(str(file), np.zeros((10, 20), np.uint8))
    with DefaultScope.overwrite_default_scope('mmseg'):
        transform = CheckedLoading(dict(type='mmseg.LoadAnnotations'))
    loaded = TRANSFORMS.build(LOAD)(dict(img_path=str(image)))
    paths = dict(seg_map_path=str(file), seg_fields=[], label_map=None, reduce_zero_label=False)
    resized = dict(img=np.zeros((10, 20, 3), np.uint8), img_shape=(10, 20))
    with pytest.raises(UsageError, match=r'map\.png has 20 × 10 pixels, but its image 30 × 40'):
        transform({**loaded, **paths, **resized})
    with pytest.raises(UsageError, match=r'map\.png has 20 × 10 pixels, but its image 30 × 40'):
        transform({**loaded, **paths})
