"""The configs of the demo read the data that the demo makes."""

from pathlib import Path

import pytest
from mmdet.registry import DATASETS
from mmdet.utils import register_all_modules
from mmengine.config import Config
from mmengine.registry import DefaultScope

CONFIGS = Path(__file__).parents[2] / 'configs'


def test_demo_configs_find_the_data_that_the_demo_makes(tmp_path: Path) -> None:
    pytest.importorskip('skimage')
    pytest.importorskip('sklearn')
    from sn_openmmlab.demo.dataset import DemoParameters, make_demo_data

    made = make_demo_data(tmp_path / 'demo', DemoParameters(train=2, val=1))
    register_all_modules()
    for file in (CONFIGS / 'demo').glob('*rcnn*.py'):
        config = Config.fromfile(file)
        for split, count in (('train', 2), ('val', 1), ('test', 1)):
            settings = config[f'{split}_dataloader'].dataset
            assert settings.data_root == 'data/demo/'
            settings.data_root = f'{made.root}/'
            dataset = DATASETS.build(settings)
            assert len(dataset) == count
            items = [dataset[i] for i in range(count)]
            boxes = sum(len(item['data_samples'].gt_instances) for item in items)
            assert boxes == made.instances['train' if split == 'train' else 'val']
            assert items[0]['inputs'].shape == (3, 192, 256)
            if 'mask' in file.stem:
                truth = items[0]['data_samples'].gt_instances
                assert truth.masks.masks.shape == (len(truth), 192, 256)
                # Each mask lies in its box.
                boxes = truth.masks.get_bboxes('hbox').tensor
                assert (boxes - truth.bboxes.tensor).abs().max() <= 1
    DefaultScope._instance_dict.clear()
