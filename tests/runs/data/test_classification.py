"""What is missing in a dataset of MMPretrain, or does not fit the head, is told before a run."""

from pathlib import Path

import pytest
from mmengine.config import Config

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.data.check import check_data
from tests.data_checks import check_loader, sentence_about

pytest.importorskip('mmpretrain')

LOAD = [dict(type='LoadImageFromFile'), dict(type='PackInputs')]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Write a folder of two classes with two images each, and the same as a list with labels."""
    for name in ('cat/0.jpg', 'cat/1.PNG', 'dog/2.jpg', 'dog/below/3.jpg', 'dog/notes.txt'):
        file = tmp_path / 'train' / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    (tmp_path / 'labels.txt').write_text('cat/0.jpg 0\ncat/1.PNG 0\ndog/2.jpg 1\n')
    return tmp_path


def dataset(root: Path, **changes: object) -> dict:
    """Return the config of a dataset in ``root``."""
    settings = dict(type='CustomDataset', data_root=str(root), data_prefix='train', pipeline=LOAD)
    return {**settings, **changes}


def check_head(classes: int, part: dict) -> None:
    """Check a dataset for a classifier with so many classes."""
    model = dict(type='ImageClassifier', head=dict(type='LinearClsHead', num_classes=classes))
    loader = dict(train_dataloader=dict(batch_size=2, dataset=part))
    check_data(Config(dict(default_scope='mmpretrain', model=model, **loader)), 'train_dataloader')


def test_complete_data_pass(root: Path) -> None:
    check_loader('mmpretrain', dataset(root))
    check_loader('mmpretrain', dataset(root, ann_file='labels.txt'))
    check_loader('mmpretrain', dataset(root, with_label=False))
    check_head(2, dataset(root, indices=range(0, 4, 3)))
    check_head(2, dataset(root, ann_file='labels.txt', indices=3))
    # Without names, nobody knows whether there are more classes.
    check_head(5, dataset(root, ann_file='labels.txt'))
    check_head(2, dict(type='RepeatDataset', times=2, dataset=dataset(root)))


@pytest.mark.parametrize('kind', ['CustomDataset', 'ImageNet'])
def test_missing_folder(kind: str, root: Path) -> None:
    said = sentence_about('mmpretrain', dataset(root, type=kind, data_prefix='val'))
    assert f'the train_dataloader of the config reads {root}/val, which does not exist' in said


def test_data_that_mmpretrain_downloads_are_not_looked_for(tmp_path: Path) -> None:
    absent = dict(type='CIFAR10', data_root=str(tmp_path / 'absent'), pipeline=[])
    check_loader('mmpretrain', absent)
    said = sentence_about('mmpretrain', dict(absent, download=False))
    assert f'reads {tmp_path}/absent, which does not exist' in said


def test_images_without_folders_of_classes(root: Path) -> None:
    said = sentence_about('mmpretrain', dataset(root, data_prefix='train/cat'))
    assert f'reads {root}/train/cat, which has no folders of classes: put the images of' in said


def test_folders_without_images(root: Path) -> None:
    said = sentence_about('mmpretrain', dataset(root, extensions=['.tif', '.bmp']))
    assert f'reads {root}/train, which has no images: no file in or below cat, dog ends' in said
    assert '.bmp, .tif; put the images there' in said


def test_folders_that_are_not_those_of_the_dataset(root: Path) -> None:
    said = sentence_about('mmpretrain', dataset(root, type='ImageNet'))
    assert 'has 2 folders (cat, dog), but its dataset has 1000 classes: put all of them' in said
    named = dataset(root, metainfo=dict(classes=('cat', 'dog', 'owl')))
    assert 'has 2 folders (cat, dog), but its dataset has 3' in sentence_about('mmpretrain', named)


@pytest.mark.parametrize('line', ['dog/2.jpg', 'dog/2.jpg dog', ''])
def test_line_without_a_number(line: str, root: Path) -> None:
    (root / 'labels.txt').write_text(f'cat/0.jpg 0\n{line}\ncat/1.PNG 0\n')
    said = sentence_about('mmpretrain', dataset(root, ann_file='labels.txt'))
    assert f'reads {root}/labels.txt, of which each line must name an image and the' in said


def test_empty_list(root: Path) -> None:
    (root / 'labels.txt').write_text('')
    said = sentence_about('mmpretrain', dataset(root, ann_file='labels.txt'))
    assert f'reads {root}/labels.txt, which lists no images' in said


def test_listed_image_that_is_missing(root: Path) -> None:
    (root / 'train/cat/0.jpg').unlink()
    said = sentence_about('mmpretrain', dataset(root, ann_file='labels.txt'))
    assert said.startswith('1 of 3 images that the train_dataloader of the config reads by ')
    assert f'do not exist, the first is {root}/train/cat/0.jpg' in said


@pytest.mark.parametrize('indices', [5, [0, 4], range(0, 6, 2)])
def test_indices_beyond_the_images(indices: object, root: Path) -> None:
    said = sentence_about('mmpretrain', dataset(root, indices=indices))
    assert 'which has 4 images, but its indices choose image 4: set indices' in said


@pytest.mark.parametrize('classes', [1, 3, 1000])
def test_head_with_other_classes(classes: int, root: Path) -> None:
    with pytest.raises(UsageError) as caught:
        check_head(classes, dataset(root))
    said = str(caught.value)
    assert f'model.head.num_classes is {classes}, but the train_dataloader of the config' in said
    assert f'reads {root}/train, which has 2 classes: set model.head.num_classes=2' in said


def test_label_that_the_head_does_not_have(root: Path) -> None:
    with pytest.raises(
        UsageError, match=r'num_classes is 1, but .*labels.txt, which has 2 classes'
    ):
        check_head(1, dataset(root, ann_file='labels.txt'))


def test_other_folders_to_validate_on(root: Path) -> None:
    for name in ('cat', 'horse'):
        (root / 'val' / name).mkdir(parents=True)
        (root / 'val' / name / '0.jpg').touch()
    val = dict(batch_size=2, dataset=dataset(root, data_prefix='val'))
    loaders = dict(train_dataloader={**val, 'dataset': dataset(root)}, val_dataloader=val)
    with pytest.raises(UsageError, match=r'classes cat, dog, but the val_.* those of cat, horse'):
        check_data(Config(dict(default_scope='mmpretrain', **loaders)), *loaders)


def test_one_class_is_a_warning(root: Path, capsys: pytest.CaptureFixture) -> None:
    (root / 'labels.txt').write_text('cat/0.jpg 1\ncat/1.PNG 1\n')
    check_loader('mmpretrain', dataset(root, ann_file='labels.txt'))
    assert 'all 2 images of the train_dataloader have the same class, 1.' in capsys.readouterr().err
