"""The shipped segmenters train and test alike by our tools and by the toolbox's."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.resumed import EXACT_RESUME

SIDE = 64
# What makes a shipped config small enough for a test; norms, heads and losses stay.
SMALL = """
_base_ = '{file}'

side = ({side}, {side})
model = dict(
    backbone=dict(init_cfg=None, base_channels=16),
    decode_head=dict(in_channels=512),
    auxiliary_head=dict(in_channels=256),
    data_preprocessor=dict(size=side),
)
if 'c1_in_channels' in _base_.model.decode_head:
    model['decode_head']['c1_in_channels'] = 64
train_pipeline = _base_.train_dataloader.dataset.pipeline
for step in train_pipeline:
    if step['type'] == 'RandomCrop':
        step['crop_size'] = side
    elif step['type'] in ('Resize', 'RandomResize'):
        step['scale'] = side
test_pipeline = _base_.test_dataloader.dataset.pipeline
test_pipeline[1]['scale'] = side
loader = dict(num_workers=0, persistent_workers=False)
train_dataloader = dict(loader, dataset=dict(data_root='{data}', pipeline=train_pipeline))
val_dataloader = dict(loader, dataset=dict(data_root='{data}', pipeline=test_pipeline))
test_dataloader = val_dataloader
tta_pipeline = _base_.tta_pipeline
if 'scale' in tta_pipeline[1]['transforms'][0][0]:
    for step in tta_pipeline[1]['transforms'][0]:
        step['scale'] = tuple(part // 8 for part in step['scale'])
del step, loader, side
train_cfg = dict(max_iters=2, val_interval=2)
default_hooks = dict(logger=dict(interval=1), checkpoint=dict(interval=2))
randomness = dict(seed=0)
"""
ADE20K = {
    'images/training/{}.jpg': 'annotations/training/{}.png',
    'images/validation/{}.jpg': 'annotations/validation/{}.png',
}
CITYSCAPES = {
    f'leftImg8bit/{split}/ulm/{{}}_leftImg8bit.png': (
        f'gtFine/{split}/ulm/{{}}_gtFine_labelTrainIds.png'
    )
    for split in ('train', 'val')
}
CONFIGS = {
    'deeplab/deeplab_r50b-d8_sn_8xb2-100k_ade20k-450x450.py': (ADE20K, 150),
    'deeplabv3plus/deeplabv3plus_r50b-d8_sn_4xb2-80k_cityscapes-512x1024.py': (CITYSCAPES, 18),
}


@pytest.fixture(scope='module', params=CONFIGS, ids=lambda name: Path(name).stem)
def small(
    request: pytest.FixtureRequest, repo: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a shipped config on a tiny data set in the toolbox's folders."""
    root = tmp_path_factory.mktemp('data')
    folders, last = CONFIGS[request.param]
    rng = np.random.default_rng(0)
    for images, labels in folders.items():
        for i in range(4):
            truth = np.zeros((SIDE, SIDE), np.uint8)
            truth[:, SIDE // 2 :] = last
            picture = rng.integers(0, 80, (SIDE, SIDE, 3), np.uint8)
            picture[:, SIDE // 2 :] += 150
            for name, content in ((images, picture), (labels, truth)):
                file = root / name.format(i)
                file.parent.mkdir(parents=True, exist_ok=True)
                cv2.imwrite(str(file), content)
    file = root / 'small.py'
    shipped = repo / 'configs' / 'segmentation' / request.param
    file.write_text(SMALL.format(file=shipped, data=root, side=SIDE))
    return file


@pytest.fixture(scope='module')
def trained(
    small: Path, repo: Path, run_tool: Callable, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return the work folder of a training by our tool."""
    folder = tmp_path_factory.mktemp('trained')
    run_tool(repo / 'tools/train.py', small, '--work-dir', folder)
    return folder


def tool(name: str) -> Path:
    """Return a tool of MMSegmentation."""
    return Path(find_spec('mmseg').origin).parent / '.mim' / 'tools' / name


def test_toolbox_trains_as_we_do(
    small: Path, trained: Path, run_tool: Callable, logged: Callable, tmp_path: Path
) -> None:
    run_tool(tool('train.py'), small, '--work-dir', tmp_path, *EXACT_RESUME)
    assert logged(tmp_path) == logged(trained)
    losses, metrics = logged(trained)
    assert len(losses) == 2
    assert {'aAcc', 'mIoU', 'mAcc'} <= set(metrics[-1])


def test_toolbox_tests_at_several_scales_as_we_do(
    small: Path,
    trained: Path,
    repo: Path,
    run_tool: Callable,
    logged: Callable,
    tested: Callable,
    tmp_path: Path,
) -> None:
    arguments = (small, trained / 'iter_2.pth', '--tta', '--work-dir')
    run_tool(repo / 'tools/test.py', *arguments, tmp_path / 'ours')
    run_tool(tool('test.py'), *arguments, tmp_path / 'theirs')
    assert tested(tmp_path / 'ours') == tested(tmp_path / 'theirs')
    # The single scale is what validation has.
    run_tool(repo / 'tools/test.py', *arguments[:2], '--work-dir', tmp_path / 'single')
    assert tested(tmp_path / 'single') == logged(trained)[1][-1]
