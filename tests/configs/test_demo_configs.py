"""The configs of the demo read the data that the demo makes."""

import json
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest
from mmengine.config import Config

CONFIGS = Path(__file__).parents[2] / 'configs'


@pytest.fixture(scope='module')
def made(tmp_path_factory: pytest.TempPathFactory) -> object:
    """Return the demo data, of two and one image."""
    pytest.importorskip('skimage')
    pytest.importorskip('sklearn')
    from studies.demo.dataset import DemoParameters, make_demo_data

    return make_demo_data(tmp_path_factory.mktemp('demo') / 'demo', DemoParameters(train=2, val=1))


def read(file: Path, split: str, made: object) -> list[dict]:
    """Return the items of a split of the demo data, as a config reads them."""
    config = Config.fromfile(file)
    toolbox = config.default_scope
    import_module(f'{toolbox}.utils').register_all_modules()
    settings = config[f'{split}_dataloader'].dataset
    assert settings.data_root.startswith('data/demo/')
    settings.data_root = settings.data_root.replace('data/demo', str(made.root))
    dataset = import_module(f'{toolbox}.registry').DATASETS.build(settings)
    return [dataset[i] for i in range(len(dataset))]


@pytest.mark.parametrize('split', ['train', 'val', 'test'])
@pytest.mark.parametrize('file', sorted(CONFIGS.glob('demo/*rcnn*.py')), ids=lambda file: file.stem)
def test_detectors_find_the_boxes_and_masks(file: Path, split: str, made: object) -> None:
    items = read(file, split, made)
    assert len(items) == (2 if split == 'train' else 1)
    boxes = sum(len(item['data_samples'].gt_instances) for item in items)
    assert boxes == made.instances['train' if split == 'train' else 'val']
    assert items[0]['inputs'].shape == (3, 192, 256)
    if 'mask' in file.stem:
        truth = items[0]['data_samples'].gt_instances
        assert truth.masks.masks.shape == (len(truth), 192, 256)
        # Each mask lies in its box.
        boxes = truth.masks.get_bboxes('hbox').tensor
        assert (boxes - truth.bboxes.tensor).abs().max() <= 1


@pytest.mark.parametrize('split', ['train', 'val', 'test'])
def test_segmenter_finds_the_label_maps(split: str, made: object) -> None:
    (file,) = CONFIGS.glob('demo/deeplab*.py')
    items = read(file, split, made)
    part = 'train' if split == 'train' else 'val'
    assert len(items) == (2 if split == 'train' else 1)
    table = json.loads((made.root / f'annotations/instances_{part}.json').read_text())
    for i, item in enumerate(items):
        assert item['inputs'].shape == (3, 192, 256)
        labels = item['data_samples'].gt_sem_seg.data
        assert labels.shape == (1, 192, 256)
        # Background is 0, and each digit has the pixels of its masks.
        for category in table['categories']:
            area = sum(
                truth['area']
                for truth in table['annotations']
                if (truth['image_id'], truth['category_id']) == (i + 1, category['id'])
            )
            assert (labels == category['id']).sum() == area
    config = Config.fromfile(file)
    names = [category['name'] for category in table['categories']]
    assert list(config.train_dataloader.dataset.metainfo.classes) == ['background', *names]


@pytest.mark.parametrize('split', ['train', 'val', 'test'])
def test_classifier_finds_the_crops_of_the_digits(split: str, made: object) -> None:
    pytest.importorskip('mmpretrain')
    (file,) = CONFIGS.glob('demo/resnet*.py')
    items = read(file, split, made)
    part = 'train' if split == 'train' else 'val'
    table = json.loads((made.root / f'annotations/instances_{part}.json').read_text())
    digits = Counter(truth['category_id'] - 1 for truth in table['annotations'])
    assert Counter(item['data_samples'].gt_label.item() for item in items) == digits
    assert {item['inputs'].shape for item in items} == {(3, 64, 64)}
