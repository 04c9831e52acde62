"""The config of docs/guides/own_boxes.md works as the page says, and so do its mistakes."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
from mmdet.registry import DATASETS, HOOKS, METRICS, MODELS
from mmengine.config import Config
from mmengine.registry import init_default_scope

from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.runs.data.check import check_data
from sn_openmmlab.runs.weights.files import check_pretrained

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / 'docs/guides/own_boxes.md').read_text()
(BLOCK,) = re.findall(r'```python\n(.*?)```', PAGE, re.DOTALL)
SCRATCH, SMALL = re.findall(r"`_base_ = '(.*?)'`", PAGE)
# The file's order of the classes; their numbers in the file are in another order.
CATEGORIES = {'RBC': 7, 'WBC': 3, 'Platelets': 9}
PICTURES = {'train': 3, 'val': 2, 'test': 1}


@pytest.fixture(autouse=True)
def mmdet_scope() -> None:
    """Set the toolbox's scope."""
    init_default_scope('mmdet')


@pytest.fixture(scope='module')
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data set laid out as the page says; each picture has one box of each class."""
    root = tmp_path_factory.mktemp('cells')
    for folder in ('images', 'annotations'):
        (root / folder).mkdir()
    for split, count in PICTURES.items():
        names = [f'{split}{i}.png' for i in range(count)]
        for name in names:
            cv2.imwrite(str(root / 'images' / name), np.zeros((48, 64, 3), np.uint8))
        boxes = [(i, category) for i in range(count) for category in CATEGORIES.values()]
        table = dict(
            images=[
                dict(id=i, file_name=name, width=64, height=48) for i, name in enumerate(names)
            ],
            categories=[dict(id=number, name=name) for name, number in CATEGORIES.items()],
            annotations=[
                dict(id=i, image_id=image, category_id=c, bbox=[c, 5, 20, 10], area=200, iscrowd=0)
                for i, (image, c) in enumerate(boxes)
            ],
        )
        (root / 'annotations' / f'{split}.json').write_text(json.dumps(table))
    return root


@pytest.fixture
def read(tmp_path: Path, data: Path) -> Callable[..., Config]:
    """Return a function that reads the page's config, with some text replaced, on the data set."""

    def read_config(changes: dict[str, str] | None = None, base: str | None = None) -> Config:
        own_base = re.search("_base_ = '(.*)'", BLOCK)[1]
        # Where the page says to save it, and the data.
        folder = ROOT / 'cells'
        text = BLOCK.replace(own_base, str((folder / (base or own_base)).resolve()))
        text = text.replace('data/bccd/', f'{data}/')
        for old, new in (changes or {}).items():
            assert text.count(old) == 1
            text = text.replace(old, new)
        file = tmp_path / 'cells.py'
        file.write_text(text)
        return Config.fromfile(file)

    return read_config


def train_set(config: Config) -> object:
    """Return the data set for training."""
    return DATASETS.build(config.train_dataloader.dataset)


def check_classes(config: Config) -> None:
    """Run the check that the page's hook makes before training."""
    runner = SimpleNamespace(
        model=MODELS.build(config.model),
        train_dataloader=SimpleNamespace(dataset=train_set(config)),
    )
    HOOKS.build(config.custom_hooks[0]).before_train_epoch(runner)


def test_ten_lines_change() -> None:
    base, *lines = [line for line in BLOCK.splitlines() if line]
    assert base.startswith('_base_ = ')
    assert len(lines) == 10
    assert 'Ten lines below the first' in PAGE
    # Every name that the block sets has its row in the table.
    rows = ''.join(line.split('|')[1] for line in PAGE.splitlines() if line.startswith('| `'))
    for line in lines:
        name = line.split()[0]
        assert name.endswith(('common', 'dataloader')) or f'`{name}`' in rows


def test_data_sets_hold_the_pictures_and_classes(read: Callable[..., Config]) -> None:
    config = read()
    for split, count in PICTURES.items():
        dataset = DATASETS.build(config[f'{split}_dataloader'].dataset)
        assert len(dataset) == count
        assert dataset.metainfo['classes'] == tuple(CATEGORIES)
        for i in range(count):
            ground_truth = dataset[i]['data_samples'].gt_instances
            assert ground_truth.labels.tolist() == [0, 1, 2]
    # The picture is as wide as 64 of 48 lines are when these are resized to 800.
    assert dataset[0]['inputs'].shape == (3, 800, 1067)


def test_model_has_the_classes_and_the_norms(read: Callable[..., Config]) -> None:
    config = read()
    model = MODELS.build(config.model)
    assert model.roi_head.bbox_head.fc_cls.out_features == 3 + 1
    assert model.roi_head.bbox_head.fc_reg.out_features == 3 * 4
    assert sum(isinstance(layer, SwitchNorm) for layer in model.modules()) == 53 + 8 + 4


def test_ground_truth_comes_from_the_data(read: Callable[..., Config], data: Path) -> None:
    config = read()
    for split in ('val', 'test'):
        assert Path(config[f'{split}_evaluator'].ann_file) == data / 'annotations' / f'{split}.json'
        METRICS.build(config[f'{split}_evaluator'])


def test_small_detector_is_a_base_too_and_the_hook_finds_no_fault(
    read: Callable[..., Config],
) -> None:
    config = read(base=SMALL)
    assert config.model.backbone.depth == 18
    assert config.model.backbone.init_cfg is None
    assert (config.optim_wrapper.optimizer.lr, config.auto_scale_lr.base_batch_size) == (0.01, 2)
    check_pretrained(config)
    check_classes(config)


def test_learning_rate_on_one_gpu(read: Callable[..., Config]) -> None:
    config = read()
    rate, batch = config.optim_wrapper.optimizer.lr, config.auto_scale_lr.base_batch_size
    assert (rate, batch) == (0.02, 16)
    assert f'{rate * config.train_dataloader.batch_size / batch:g} for' in PAGE
    assert config.train_cfg.max_epochs == 12
    assert config.param_scheduler[0].end == 500


def test_missing_weights_and_training_from_scratch(
    read: Callable[..., Config], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = read()
    with pytest.raises(UsageError, match=r'checkpoints/resnet50_sn\.pth, which does not exist'):
        check_pretrained(config)
    config = read(base=SCRATCH)
    check_pretrained(config)
    check_classes(config)
    assert MODELS.build(config.model.backbone).frozen_stages == -1
    assert f'takes {config.train_cfg.max_epochs} epochs' in PAGE


@pytest.mark.parametrize(
    'base',
    [
        '../configs/detection/retinanet/retinanet_r50_fpn_sn-all_1x_coco.py',
        '../configs/detection/fcos/fcos_r50_fpn_sn-all_1x_coco.py',
        '../configs/detection/mask_rcnn/mask-rcnn_r50_fpn_sn-all_2x_coco.py',
    ],
)
def test_other_bases_differ_in_the_line_of_the_model(base: str, read: Callable) -> None:
    (line,) = [line for line in BLOCK.splitlines() if line.startswith('model = ')]
    models = re.findall('`(model = .*)`', PAGE)
    if 'mask' in base:
        other = next(model for model in models if 'mask_head' in model)
    else:
        other = next(model for model in models if 'roi_head' not in model)
    config = read({line: other}, base)
    model = MODELS.build(config.model)
    classes = {layer.num_classes for layer in model.modules() if hasattr(layer, 'num_classes')}
    # The RPN tells objects from background.
    assert classes - {1} == {3}
    assert {3} <= classes


def test_without_a_test_set_the_validation_set_is_tested(read: Callable[..., Config]) -> None:
    swap = {line: line for line in BLOCK.splitlines() if line.startswith('test_')}
    for line in swap:
        name = line.split()[0]
        swap[line] = f'{name} = {name.replace("test", "val")}'
        assert f'`{swap[line]}`' in PAGE
    swap = {line.replace('data/bccd/', ''): new for line, new in swap.items()}
    config = read(swap)
    assert config.test_dataloader == config.val_dataloader
    assert config.test_evaluator == config.val_evaluator


def test_the_command_prints_the_names_in_the_files_order(data: Path) -> None:
    (command,) = re.findall('^python -c (.*)$', PAGE, re.MULTILINE)
    (code,) = shlex.split(command)
    code = code.replace('data/bccd', str(data))
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.stdout == "('RBC', 'WBC', 'Platelets')\n"


def test_wrong_number_of_classes_is_found_by_the_hook(read: Callable[..., Config]) -> None:
    with pytest.raises(AssertionError) as caught:
        check_classes(read({'num_classes=len(classes)': ''}, SMALL))
    said = str(caught.value).replace('`', '')
    assert re.search('`AssertionError: (.*?) …`', PAGE)[1] in said
    # One class without its comma.
    with pytest.raises(AssertionError, match='Add comma if number of classes is 1'):
        check_classes(read({"('RBC', 'WBC', 'Platelets')": "('RBC')"}, SMALL))


def test_wrong_number_of_classes_fails_in_evaluation_without_the_hook(
    read: Callable[..., Config],
) -> None:
    metric = METRICS.build(read().val_evaluator)
    metric.dataset_meta = dict(classes=tuple(CATEGORIES))
    found = dict(
        bboxes=torch.tensor([[1.0, 1, 9, 9]]), scores=torch.ones(1), labels=torch.tensor([3])
    )
    metric.process({}, [dict(img_id=0, ori_shape=(48, 64), pred_instances=found)])
    with pytest.raises(IndexError) as caught:
        metric.evaluate(1)
    assert f'`IndexError: {caught.value}`' in PAGE


def test_without_names_no_picture_is_left(read: Callable[..., Config]) -> None:
    with pytest.raises(ValueError) as caught:
        train_set(read({', metainfo=dict(classes=classes)': ''}))
    assert f'`ValueError: {caught.value}`' in PAGE


def test_without_its_line_the_evaluator_looks_for_coco(
    read: Callable[..., Config], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = read({'val_evaluator = ': 'other = '})
    with pytest.raises(FileNotFoundError) as caught:
        METRICS.build(config.val_evaluator)
    assert f'`FileNotFoundError: … {caught.value.filename}`' in PAGE


def test_missing_data_is_named(read: Callable[..., Config], data: Path) -> None:
    config = read({'annotations/train.json': 'annotations/absent.json'})
    with pytest.raises(UsageError, match=re.escape(f'{data}/annotations/absent.json')):
        check_data(config, 'train_dataloader')


def test_a_name_that_is_not_in_the_file_moves_the_numbers(read: Callable[..., Config]) -> None:
    dataset = train_set(read({"'WBC'": "'Wbc'"}))
    labels = [box['bbox_label'] for box in dataset.get_data_info(0)['instances']]
    assert labels == [0, 1]
    # The second box left is of the third class.
    assert dataset.get_data_info(0)['instances'][1]['bbox'][0] == CATEGORIES['Platelets']


def test_the_order_of_the_file_numbers_the_classes(read: Callable[..., Config]) -> None:
    dataset = train_set(read({"('RBC', 'WBC', 'Platelets')": "('Platelets', 'WBC', 'RBC')"}))
    first = dataset.get_data_info(0)['instances'][0]
    assert first['bbox'][0] == CATEGORIES['RBC']
    assert dataset.metainfo['classes'][first['bbox_label']] == 'Platelets'
