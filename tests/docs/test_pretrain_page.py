"""The commands of docs/guides/pretrain.md run one after the other, on tiny data."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from studies.demo.dataset import DemoParameters, make_demo_data

CLASSES = ('airplane', 'bird', 'cat')
WORKERS = ('num_workers=0', 'persistent_workers=False')


@pytest.fixture(scope='module')
def page(repo: Path) -> str:
    return (repo / 'docs/guides/pretrain.md').read_text()


@pytest.fixture(scope='module')
def options(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return what makes the data of both configs tiny, by the name of the config."""
    cifar10, demo = (tmp_path_factory.mktemp(name) for name in ('cifar10', 'demo'))
    rng = np.random.default_rng(0)
    for split, name in ((s, n) for s in ('train', 'test') for n in CLASSES):
        (cifar10 / split / name).mkdir(parents=True)
        for i in range(8):
            image = rng.integers(0, 256, (32, 32, 3), np.uint8)
            cv2.imwrite(str(cifar10 / split / name / f'{i}.jpg'), image)
    make_demo_data(demo / 'data', DemoParameters(train=4, val=2))
    loaders = ('train_dataloader', 'val_dataloader', 'test_dataloader')
    images = {loader: f'{demo}/data/annotations/instances_val.json' for loader in loaders}
    images['train_dataloader'] = f'{demo}/data/annotations/instances_train.json'
    quick = [f'{loader}.{option}' for loader in loaders for option in WORKERS]
    return {
        'resnet18': [
            *quick,
            *(f'{loader}.dataset.data_root={cifar10}' for loader in loaders),
            *(f'{loader}.dataset.indices=None' for loader in loaders),
            f'model.head.num_classes={len(CLASSES)}',
            'train_dataloader.batch_size=4',
        ],
        'faster-rcnn': [
            *quick,
            *(f'{loader}.dataset.data_root={demo}/data' for loader in loaders),
            *(f'{loader}.dataset.ann_file={file}' for loader, file in images.items()),
            f'val_evaluator.ann_file={images["val_dataloader"]}',
            f'test_evaluator.ann_file={images["val_dataloader"]}',
        ],
    }


@pytest.mark.slow
def test_the_detector_starts_from_the_classifier_and_is_tested(
    page: str, options: dict, repo: Path, tmp_path: Path, run_tool: Callable
) -> None:
    (block,) = re.findall(r'```bash\n(.*?)```', page, re.DOTALL)
    said = []
    for command in block.splitlines():
        words = shlex.split(command.replace('work_dirs', str(tmp_path)))
        assert words.pop(0) == 'python'
        words[:2] = [str(repo / word) for word in words[:2]]
        tiny = next(v for name, v in options.items() if name in words[1])
        words += [*(['--cfg-options'] if '--cfg-options' not in words else []), *tiny]
        if words[0].endswith('test.py'):
            words[3:3] = ['--work-dir', str(tmp_path / 'tested')]
        said.append(run_tool(*words).stdout)
    (promised,) = re.findall(r'```text\n(.*?)\n```', page, re.DOTALL)
    assert promised.replace('work_dirs', str(tmp_path)) in said[1]
    assert 'coco/bbox_mAP' in said[2]


def test_lines_of_the_config_and_the_options_say_the_same(page: str, repo: Path) -> None:
    from mmengine.config import Config

    (words,) = re.findall(r'--cfg-options (.*_delete_.*)$', page, re.MULTILINE)
    config = Config.fromfile(repo / 'configs/demo/faster-rcnn_r18_fpn_sn-all_digits.py')
    pairs = (word.split('=') for word in shlex.split(words))
    config.merge_from_dict({key: {'True': True}.get(value, value) for key, value in pairs})
    (block,) = re.findall(r'```python\n(.*?)```', page, re.DOTALL)
    names: dict = {}
    exec(block, names)
    assert config.model.backbone.init_cfg == names['init_cfg']
    assert names['model']['backbone']['init_cfg'] == names['init_cfg']
