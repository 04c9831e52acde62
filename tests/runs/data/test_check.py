"""Missing data is told before anything is built, whatever the dataset looks like."""

from pathlib import Path

import pytest
from mmengine.config import Config

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.data.check import check_data


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a data set with an annotation file and two folders."""
    for folder in ('images', 'labels'):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / '0.png').touch()
    (tmp_path / 'ann.json').touch()
    return tmp_path


def config(dataset: object) -> Config:
    return Config(dict(train_dataloader=dict(batch_size=2, dataset=dataset)))


def datasets(root: Path, name: str) -> list[dict]:
    """Return datasets of all toolboxes that read the given folder or file."""
    return [
        dict(type='CocoDataset', data_root=f'{root}/', ann_file=name, data_prefix=dict(img='')),
        dict(
            type='CocoDataset', data_root=str(root), ann_file='ann.json', data_prefix={'img': name}
        ),
        dict(type='CocoDataset', ann_file=str(root / name)),
        dict(type='BaseSegDataset', data_root=root.as_posix(), data_prefix={'seg_map_path': name}),
        dict(type='ImageNet', data_root=str(root), data_prefix=name),
        dict(type='CustomDataset', data_root=str(root / name)),
    ]


def wrapped(dataset: dict) -> list[object]:
    """Return the dataset alone and in the wrappers of the toolboxes."""
    return [
        dataset,
        dict(type='RepeatDataset', times=3, dataset=dataset),
        dict(type='ConcatDataset', datasets=[dict(type='CocoDataset'), dataset]),
        dict(type='MultiImageMixDataset', dataset=dict(type='RepeatDataset', dataset=dataset)),
    ]


@pytest.mark.parametrize('kind', range(6))
@pytest.mark.parametrize('wrapper', range(4))
def test_missing_path_is_named(kind: int, wrapper: int, root: Path) -> None:
    absent = config(wrapped(datasets(root, 'absent')[kind])[wrapper])
    with pytest.raises(UsageError) as caught:
        check_data(absent, 'train_dataloader')
    assert f'the train_dataloader of the config reads {root / "absent"}, which' in str(caught.value)
    check_data(config(wrapped(datasets(root, 'images')[kind])[wrapper]), 'train_dataloader')


@pytest.mark.parametrize('kind', [1, 3, 4, 5])
@pytest.mark.parametrize('wrapper', range(4))
@pytest.mark.parametrize('below', ['', 'train/aachen'])
def test_folder_without_any_file_is_named(kind: int, wrapper: int, below: str, root: Path) -> None:
    (root / 'bare' / below).mkdir(parents=True)
    bare = config(wrapped(datasets(root, 'bare')[kind])[wrapper])
    with pytest.raises(UsageError) as caught:
        check_data(bare, 'train_dataloader')
    said = f'the train_dataloader of the config reads {root / "bare"}, which is a folder without'
    assert said in str(caught.value)
    (root / 'bare' / below / '0.png').touch()
    check_data(bare, 'train_dataloader')


def test_only_the_loaders_of_the_run_are_checked(root: Path) -> None:
    settings = Config(
        dict(
            train_dataloader=dict(dataset=datasets(root, 'images')[0]),
            val_dataloader=dict(dataset=datasets(root, 'absent')[0]),
            test_dataloader=None,
        )
    )
    check_data(settings, 'train_dataloader', 'test_dataloader', 'other_dataloader')
    with pytest.raises(UsageError, match='the val_dataloader of the config'):
        check_data(settings, 'train_dataloader', 'val_dataloader')


def test_remote_data_is_not_looked_for() -> None:
    remote = dict(data_root='s3://bucket/coco/', ann_file='ann.json', data_prefix=dict(img='x'))
    check_data(config(remote), 'train_dataloader')
    mapped = dict(data_root='data/coco/', backend_args=dict(backend='petrel'))
    check_data(config(mapped), 'train_dataloader')


def test_data_that_mmpretrain_downloads_is_not_looked_for() -> None:
    settings = config(dict(type='CIFAR10', data_root='data/cifar10'))
    settings.default_scope = 'mmpretrain'
    check_data(settings, 'train_dataloader')


def test_relative_paths_are_of_the_current_folder(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    relative = config(dict(data_root='images/'))
    monkeypatch.chdir(root)
    check_data(relative, 'train_dataloader')
    monkeypatch.chdir(root / 'labels')
    with pytest.raises(UsageError, match='reads images/, which does not exist'):
        check_data(relative, 'train_dataloader')


@pytest.mark.parametrize('key', ['ann_file', 'seg_prefix'])
@pytest.mark.parametrize('several', [False, True])
def test_missing_ground_truth_of_a_metric_is_named(key: str, several: bool, root: Path) -> None:
    settings = Config(dict(val_dataloader=dict(dataset=datasets(root, 'images')[0])))
    for name in ('ann.json', 'absent'):
        metric = {'type': 'CocoMetric', key: str(root / name)}
        settings.val_evaluator = [dict(type='CocoMetric'), metric] if several else metric
        if name == 'ann.json':
            check_data(settings, 'val_dataloader')
    with pytest.raises(UsageError, match=f'the val_evaluator of the config reads {root}/absent'):
        check_data(settings, 'val_dataloader')
    # A training does not need what only the test does.
    check_data(settings, 'train_dataloader')


def test_folder_without_any_file_is_named_for_a_metric(root: Path) -> None:
    settings = Config(dict(val_evaluator=dict(type='CocoMetric', seg_prefix=str(root / 'bare'))))
    (root / 'bare').mkdir()
    with pytest.raises(UsageError) as caught:
        check_data(settings, 'val_dataloader')
    said = f'the val_evaluator of the config reads {root / "bare"}, which is a folder without'
    assert said in str(caught.value)


@pytest.mark.parametrize('metric', ['CityScapesMetric', 'CityscapesMetric'])
def test_metric_of_cityscapes_needs_its_package(
    metric: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Config(
        dict(
            val_dataloader=dict(dataset=datasets(root, 'images')[0]),
            val_evaluator=dict(type=metric, seg_prefix=str(root)),
        )
    )
    monkeypatch.setattr('sn_openmmlab.runs.data.check.find_spec', lambda name: None)
    with pytest.raises(UsageError, match='pip install cityscapesscripts'):
        check_data(settings, 'val_dataloader')
    monkeypatch.setattr('sn_openmmlab.runs.data.check.find_spec', lambda name: name)
    check_data(settings, 'val_dataloader')
