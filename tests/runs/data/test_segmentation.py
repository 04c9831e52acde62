"""What is missing in a dataset of MMSegmentation is told before anything is built."""

import re
import shlex
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import mmseg
import pytest
from mmengine.registry import DefaultScope
from mmseg.datasets import BaseSegDataset
from mmseg.registry import DATASETS

from tests.data_checks import check_loader, sentence_about

LOAD = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), dict(type='PackSegInputs')]
AUGMENTED = [
    dict(type='LoadImageFromFile'),
    dict(type='TestTimeAug', transforms=[[dict(type='Flip')], [dict(type='LoadAnnotations')]]),
]
WRAPPERS: list[Callable[[dict], object]] = [
    lambda dataset: dataset,
    lambda dataset: dict(type='RepeatDataset', times=3, dataset=dataset),
    lambda dataset: dict(type='ConcatDataset', datasets=[dataset, dataset]),
    lambda dataset: dict(
        type='MultiImageMixDataset',
        pipeline=[],
        dataset=dict(type='ConcatDataset', datasets=[dict(type='RepeatDataset', dataset=dataset)]),
    ),
]


class OwnDataset(BaseSegDataset):
    """A user's dataset, whose images end in .tif."""

    def __init__(self, **kwargs: object) -> None:
        super().__init__(img_suffix='.tif', **kwargs)


@pytest.fixture(autouse=True)
def no_scope_is_left() -> Iterator[None]:
    """Check that the global default scope of the registries is left unchanged."""
    before = _scopes()
    yield
    assert _scopes() == before


def _scopes() -> dict[str, str]:
    return {name: kept.scope_name for name, kept in DefaultScope._instance_dict.items()}


@pytest.fixture(autouse=True)
def own_dataset() -> Iterator[None]:
    """Register a dataset of the user."""
    DATASETS.register_module(module=OwnDataset)
    yield
    DATASETS.module_dict.pop('OwnDataset')


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Write four images of each suffix in two folders of a split, and their label maps."""
    for stem in ('0', '1', 'city/2', 'city/3'):
        for suffix in ('.jpg', '.tif'):
            image = tmp_path / 'images/train' / f'{stem}{suffix}'
            image.parent.mkdir(parents=True, exist_ok=True)
            image.touch()
        label_map = tmp_path / 'labels/train' / f'{stem}.png'
        label_map.parent.mkdir(parents=True, exist_ok=True)
        label_map.touch()
    return tmp_path


def dataset(root: Path, **changes: object) -> dict:
    """Return the config of a dataset in ``root``."""
    settings = dict(
        type='BaseSegDataset',
        data_root=f'{root}/',
        data_prefix=dict(img_path='images/train', seg_map_path='labels/train'),
        pipeline=LOAD,
    )
    return {**settings, **changes}


check = partial(check_loader, 'mmseg')
said = partial(sentence_about, 'mmseg')


KINDS = [
    dict(),
    dict(type='mmseg.BaseSegDataset'),
    dict(type=BaseSegDataset),
    dict(type='OwnDataset'),
    dict(type='ADE20KDataset'),
    dict(test_mode=True, metainfo=dict(classes=('a', 'b'))),
    dict(pipeline=AUGMENTED),
]


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('wrap', WRAPPERS)
def test_missing_label_maps_are_counted(kind: dict, wrap: Callable, root: Path) -> None:
    part = wrap(dataset(root, **kind))
    check(part)
    for stem in ('city/2', '1'):
        (root / 'labels/train' / f'{stem}.png').unlink()
        # Maps of other images do not help.
        (root / 'labels/train' / f'{stem}0.png').touch()
    first = re.escape(str(root / 'labels/train/1.png'))
    pattern = (
        '2 of 4 images that the train_dataloader of the config reads have no label map, '
        f'the first is {first}: put them there, or change data_prefix or seg_map_suffix'
    )
    assert re.match(pattern, said(part))


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('wrap', WRAPPERS)
def test_folder_without_images_is_named(kind: dict, wrap: Callable, root: Path) -> None:
    part = wrap(dataset(root, **kind))
    for image in (root / 'images').rglob('*.*'):
        image.rename(image.with_suffix('.bmp'))
    suffix = '.tif' if kind == dict(type='OwnDataset') else '.jpg'
    for loader in ('train_dataloader', 'val_dataloader'):
        assert (
            f'the {loader} of the config finds no images: no file in or below '
            f'{root}/images/train ends in {suffix}; '
        ) in said(part, loader)


def test_suffixes_are_those_of_the_config(root: Path) -> None:
    check(dataset(root, img_suffix='.tif'))
    assert 'ends in _0.jpg;' in said(dataset(root, img_suffix='_0.jpg'))
    assert '4 of 4 images' in said(dataset(root, seg_map_suffix='_map.png'))


def test_only_images_that_a_split_names_are_needed(root: Path) -> None:
    split = root / 'split.txt'
    part = dataset(root, ann_file='split.txt')
    (root / 'labels/train/1.png').unlink()
    (root / 'images/train/1.jpg').unlink()
    split.write_text('0\ncity/3\n')
    check(part)
    split.write_text('0\n1\ncity/3\n9\n')
    assert (
        '2 of 4 images that the train_dataloader of the config reads do not exist, the first is '
        f'{root}/images/train/1.jpg: '
    ) in said(part)
    (root / 'images/train/1.jpg').touch()
    (root / 'images/train/9.jpg').touch()
    (root / 'labels/train/9.png').touch()
    assert '1 of 4 images that the train_dataloader of the config reads have no label' in said(part)
    split.write_text('')
    assert f'reads {root}/split.txt, which lists no images: ' in said(part)


@pytest.mark.parametrize('indices', [1, -1, [0, 3], (3, 0)])
def test_only_images_that_indices_leave_are_needed(indices: object, root: Path) -> None:
    (root / 'labels/train/1.png').unlink()
    (root / 'labels/train/city/2.png').unlink()
    check(dataset(root, indices=indices))
    assert '1 of 2 images' in said(dataset(root, indices=2))
    assert '2 of 3 images' in said(dataset(root, indices=-3))
    assert '1 of 1 images' in said(dataset(root, indices=[1]))


def test_label_maps_that_are_not_read_are_not_needed(root: Path) -> None:
    for label_map in (root / 'labels/train').rglob('*.png'):
        label_map.rename(label_map.with_suffix('.bak'))
    assert '4 of 4 images' in said(dataset(root))
    check(dataset(root, data_prefix=dict(img_path='images/train')))
    check(dataset(root, pipeline=[LOAD[0], LOAD[2]]))
    check(dataset(root, pipeline=[LOAD[0], dict(type='LoadAnnotations', backend_args=dict(a=1))]))


@pytest.mark.parametrize('source', ['polygons.json', 'labelIds.png'])
@pytest.mark.parametrize('wrap', WRAPPERS)
def test_cityscapes_without_train_ids_tells_how_to_make_them(
    source: str, wrap: Callable, tmp_path: Path
) -> None:
    # A command names it.
    root = tmp_path / "the user's data"
    stems = [f'{city}/{city}_00000{i}_000019' for city in ('aachen', 'bochum') for i in range(3)]
    for stem in stems:
        for name in (f'leftImg8bit/train/{stem}_leftImg8bit.png', f'gtFine/train/{stem}_gtFine_'):
            file = root / (name + source if name.endswith('_') else name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
    part = wrap(
        dataset(
            root,
            type='CityscapesDataset',
            data_prefix=dict(img_path='leftImg8bit/train', seg_map_path='gtFine/train'),
        )
    )
    maps = [root / 'gtFine/train' / f'{stem}_gtFine_labelTrainIds.png' for stem in stems]
    maps[1].touch()
    found = re.match(
        r'5 of 6 images that .* have no label map, the first is (.*): make .* '
        r'converter: pip install cityscapesscripts, then python (.*)$',
        said(part),
    )
    assert found[1] == str(maps[0])
    path, folder = shlex.split(found[2])
    converter = Path(path)
    assert mmseg.__name__ in converter.parts
    assert 'cityscapes_path' in converter.read_text()
    assert folder == str(root)
    for label_map in maps:
        label_map.touch()
    check(part)
    # Nothing to make the last one from.
    maps[-1].unlink()
    Path(str(maps[-1]).replace('labelTrainIds.png', source)).unlink()
    assert '1 of 6 images' in said(part)
    assert 'put them there' in said(part)


def test_remote_data_are_passed_over(root: Path) -> None:
    (root / 'labels/train/1.png').unlink()
    assert '1 of 4' in said(dataset(root))
    check(dataset(root, backend_args=dict(backend='petrel')))
    check(dataset(root, data_prefix=dict(img_path='images/train', seg_map_path='s3://bucket/x')))


@pytest.mark.parametrize(
    'changes',
    [
        dict(type='UnknownDataset'),
        dict(type='unknown_package.UnknownDataset'),
        dict(unknown=1),
        dict(type='ADE20KDataset', metainfo=dict(classes=('no class of it',))),
        dict(type='BaseCDDataset'),
    ],
)
def test_what_cannot_be_built_is_left_to_the_toolbox(changes: dict, root: Path) -> None:
    (root / 'labels/train/1.png').unlink()
    check(dataset(root, **changes))


def test_dataset_that_names_no_folder_is_not_listed(root: Path) -> None:
    class Download(BaseSegDataset):
        def load_data_list(self) -> list[dict]:
            return pytest.fail('downloads')

    check(dict(type=Download, pipeline=LOAD))
