"""What the page on the released detectors says is so, and its commands run on tiny data."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

pytest.importorskip('mmdet')
from mmdet.datasets import CocoDataset

from sn_openmmlab.checkpoints.plans.layouts import FAMILIES
from sn_openmmlab.checkpoints.plans.released_detector import plan_released_detector
from studies.demo.dataset import DemoParameters, make_demo_data
from studies.experiments.released_detectors import Found, worth_table

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / 'docs/guides/released_detectors.md').read_text()
SMALL = '(160,120)'
LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')
QUICK = [
    f'{name}.{option}'
    for name in LOADERS
    for option in ('num_workers=0', 'persistent_workers=False')
]


def rows() -> list[list[str]]:
    """Return the cells of the table of releases."""
    lines = PAGE.split('## The releases')[1].split('##')[0].splitlines()
    return [line.strip('| ').split(' | ') for line in lines if line.startswith('| ')][1:]


def test_table_names_every_layout_with_its_config() -> None:
    (family,) = [family for family in FAMILIES if family.plan is plan_released_detector]
    named = {row[1]: re.search(r'\(\.\./\.\./configs/(.*)\)', row[2])[1] for row in rows()}
    assert named == {f'`{layout.name}`': layout.config for layout in family.layouts}


def test_reported_numbers_are_those_of_the_configs_page() -> None:
    page = (ROOT / 'configs/detection/released/README.md').read_text()
    for _, _, config, reported, _ in rows():
        name = re.search(r'\[(.*)\]', config)[1]
        cells = re.search(rf'^\| \[{name}\]\S* \| none \| (\S+) \| (\S+) ', page, re.MULTILINE)
        numbers = [number for number in cells.groups() if number[0].isdigit()]
        assert re.findall(r'[\d.]+', reported) == numbers


def test_table_of_the_parts_is_that_of_the_records() -> None:
    folder = ROOT / 'docs/released_detectors'
    found = json.loads((folder / 'found.json').read_text())['found']
    made = worth_table([Found(**row) for row in found])
    assert made + '\n' == (folder / 'tables.md').read_text()
    assert made in PAGE
    exact = [row for row in found if row['variant'] == 'nothing']
    assert [(row['found'], row['exact']) for row in exact] == [(100, 100)] * 4


@pytest.fixture(scope='module')
def converted(
    released: Callable[[str], dict], run_tool: Callable, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a converted stand-in of the Faster R-CNN of (8,2)."""
    folder = tmp_path_factory.mktemp('checkpoints')
    torch.save(released('faster_rcnn_r50_fpn_sn'), folder / 'released.pth')
    output = folder / 'faster-rcnn_r50_fpn_sn_8xb2.pth'
    run_tool(ROOT / 'tools/convert_checkpoint.py', folder / 'released.pth', output)
    (folder / 'released.pth').unlink()
    return output


def test_example_trains_on_the_digits_and_says_what_it_drops(
    converted: Path, run_tool: Callable, tmp_path: Path
) -> None:
    make_demo_data(tmp_path / 'demo', DemoParameters(train=2, val=1))
    (block,) = re.findall(r'```python\n(.*?)```', PAGE, re.DOTALL)
    base = re.search("_base_ = '(.*)'", block)[1]
    text = block.replace(base, str((ROOT / 'digits' / base).resolve()))
    (tmp_path / 'digits.py').write_text(text.replace('data/demo/', f'{tmp_path}/demo/'))
    said = run_tool(
        ROOT / 'tools/train.py',
        tmp_path / 'digits.py',
        '--auto-scale-lr',
        '--work-dir',
        tmp_path / 'work',
        '--cfg-options',
        f'load_from={converted}',
        'train_dataloader.batch_size=1',
        'train_cfg.max_epochs=1',
        f'train_dataloader.dataset.pipeline.2.scale={SMALL}',
        f'val_dataloader.dataset.pipeline.1.scale={SMALL}',
        'default_hooks.checkpoint.interval=-1',
        *QUICK,
    ).stdout
    (promised,) = re.findall(r'```text\n(.*?)\n```', PAGE, re.DOTALL)
    assert promised.replace('checkpoints/faster-rcnn_r50_fpn_sn_8xb2.pth', str(converted)) in said
    assert 'coco/bbox_mAP' in said
    losses = [float(loss) for loss in re.findall(r' loss: (\S+)', said)]
    assert losses
    assert np.isfinite(losses).all()


def test_command_evaluates_on_images_of_coco(
    converted: Path, run_tool: Callable, tmp_path: Path
) -> None:
    (command,) = re.findall(r'tools/test\.py (\S+) (\S+)$', PAGE, re.MULTILINE)
    assert Path(command[1]).name == converted.name
    image = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)
    cv2.imwrite(str(tmp_path / '0.png'), image)
    names = CocoDataset.METAINFO['classes']
    table = dict(
        images=[dict(id=0, file_name='0.png', width=80, height=60)],
        categories=[dict(id=i, name=name) for i, name in enumerate(names, 1)],
        annotations=[
            dict(id=i, image_id=0, category_id=i, bbox=[i, 5, 30, 20], area=600, iscrowd=0)
            for i in (1, 2)
        ],
    )
    (tmp_path / 'val.json').write_text(json.dumps(table))
    said = run_tool(
        ROOT / 'tools/test.py',
        ROOT / command[0],
        converted,
        '--work-dir',
        tmp_path / 'work',
        '--cfg-options',
        f'test_dataloader.dataset.data_root={tmp_path}/',
        'test_dataloader.dataset.ann_file=val.json',
        'test_dataloader.dataset.data_prefix.img=',
        f'test_evaluator.ann_file={tmp_path}/val.json',
        f'test_dataloader.dataset.pipeline.1.scale={SMALL}',
        *QUICK,
    ).stdout
    assert 'fills 61 of 61 SN layers' in said
    assert re.search(r'coco/bbox_mAP: -?\d', said)


def test_predictions_are_drawn_and_written(
    converted: Path, run_tool: Callable, tmp_path: Path
) -> None:
    """In so small a picture some boxes are narrower than a pixel."""
    image = np.random.default_rng(0).integers(0, 256, (2, 2, 3), np.uint8)
    cv2.imwrite(str(tmp_path / 'tiny.png'), image)
    run_tool(
        ROOT / 'tools/predict.py',
        ROOT / 'configs/detection/released/faster-rcnn_r50_fpn_sn_8xb2.py',
        converted,
        tmp_path / 'tiny.png',
        '--out',
        tmp_path / 'predictions',
        '--score-thr',
        '0',
        '--cfg-options',
        f'test_dataloader.dataset.pipeline.1.scale={SMALL}',
    )
    assert (tmp_path / 'predictions/vis/tiny.png').is_file()
    found = json.loads((tmp_path / 'predictions/preds/tiny.json').read_text())
    boxes = np.array(found['bboxes'])
    assert len(boxes) == len(found['class_names']) > 0
    widths = boxes[:, 2:] - boxes[:, :2]
    assert (widths < 0).any()
    assert (widths >= -1).all()
