"""The files of the predictions."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from sn_openmmlab.errors import UsageError
from sn_openmmlab.prediction.output import check_output_folder, output_names, write_prediction
from sn_openmmlab.prediction.prediction import Prediction

RED = np.full((3, 5, 3), (255, 0, 0), np.uint8)


def test_each_image_has_a_name_of_its_own() -> None:
    images = ['a/1.jpg', 'b/1.jpg', 'b/1.png', 'b/1_2.png', 'c/x.y.png', 'c/X.Y.JPG', 'c/2.png']
    assert output_names(list(map(Path, images))) == [
        '1',
        '1_2',
        '1_3',
        '1_2_2',
        'x.y',
        'X.Y_2',
        '2',
    ]


def test_picture_and_record_are_written(tmp_path: Path) -> None:
    out = tmp_path / 'new/out'
    write_prediction(Prediction(RED, {'label': 3}), Path('ü/a.JPG'), 'a b', out)
    assert sorted(file.relative_to(out) for file in out.rglob('*') if file.is_file()) == [
        Path('preds/a b.json'),
        Path('vis/a b.jpg'),
    ]
    assert json.loads((out / 'preds/a b.json').read_text()) == {'image': 'ü/a.JPG', 'label': 3}
    blue, green, red = cv2.imread(str(out / 'vis/a b.jpg'))[1, 1]
    assert red > 250
    assert max(blue, green) < 5


@pytest.mark.parametrize(('largest', 'kind'), [(255, np.uint8), (256, np.uint16)])
def test_label_map_keeps_its_labels(largest: int, kind: type, tmp_path: Path) -> None:
    label_map = np.array([[0, 1], [2, largest]])
    write_prediction(Prediction(RED, {}, label_map), Path('a.webp'), 'a', tmp_path)
    written = cv2.imread(str(tmp_path / 'preds/a.png'), cv2.IMREAD_UNCHANGED)
    assert written.dtype == kind
    assert written.tolist() == label_map.tolist()
    assert json.loads((tmp_path / 'preds/a.json').read_text())['label_map'] == 'a.png'
    assert cv2.imread(str(tmp_path / 'vis/a.png')).shape == RED.shape


def test_file_that_cannot_be_written_leaves_nothing_unfinished(tmp_path: Path) -> None:
    (tmp_path / 'preds/a.json').mkdir(parents=True)
    with pytest.raises(UsageError, match=r'preds/a\.json is a folder'):
        write_prediction(Prediction(RED, {}), Path('a.png'), 'a', tmp_path)
    assert [file.name for file in (tmp_path / 'preds').iterdir()] == ['a.json']


def test_folder_must_be_one(tmp_path: Path) -> None:
    file = tmp_path / 'file'
    file.touch()
    for out in (file, file / 'below'):
        with pytest.raises(UsageError, match=f'{file} is a file, not a folder'):
            check_output_folder(out, [])
    (tmp_path / 'preds').touch()
    with pytest.raises(UsageError, match='preds is a file, not a folder'):
        check_output_folder(tmp_path, [])


def test_images_are_not_overwritten(tmp_path: Path) -> None:
    image = tmp_path / 'vis/a.png'
    image.parent.mkdir()
    image.touch()
    with pytest.raises(UsageError, match=f'{image} lies where the predictions go'):
        check_output_folder(tmp_path, [image])
    check_output_folder(tmp_path / 'out', [image])
    check_output_folder(tmp_path / 'vis', [image])
