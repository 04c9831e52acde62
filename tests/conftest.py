"""Share tiny data sets, their configs, stand-ins for released weights, and processes."""

import json
import logging
import os
import runpy
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import _sleeping_threads  # noqa: F401
import numpy as np
import pytest
import torch

from tests import released_weights, run_state
from tests.processes import CAN_FORK, LIMIT, Job, WarmProcess, run_anew
from tests.toolbox_caches import find_configs_once

WIDTH, HEIGHT = 96, 64
# Whether a part of a test failed.
FAILED = pytest.StashKey[bool]()

DETECTION = """
_base_ = '{repo}/configs/_base_/faster-rcnn_r18_fpn_sn-all_scratch.py'

metainfo = dict(classes=('bright', 'dark'))
model = dict(
    neck=dict(out_channels=32),
    rpn_head=dict(in_channels=32, feat_channels=32),
    roi_head=dict(
        bbox_roi_extractor=dict(out_channels=32),
        bbox_head=dict(in_channels=32, conv_out_channels=32, fc_out_channels=64, num_classes=2),
    ),
    test_cfg=dict(rcnn=dict(score_thr=0.0)),
)
load = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations', with_bbox=True)]
test_keys = ('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor')
train_dataloader = dict(
    num_workers=0,
    persistent_workers=False,
    dataset=dict(
        data_root='{data}/',
        metainfo=metainfo,
        ann_file='train.json',
        data_prefix=dict(img='images/'),
        pipeline=[*load, dict(type='PackDetInputs')],
    ),
)
val_dataloader = dict(
    num_workers=0,
    persistent_workers=False,
    dataset=dict(
        data_root='{data}/',
        metainfo=metainfo,
        ann_file='val.json',
        data_prefix=dict(img='images/'),
        pipeline=[
            load[0],
            dict(type='Resize', scale=({width}, {height}), keep_ratio=True),
            load[1],
            dict(type='PackDetInputs', meta_keys=test_keys),
        ],
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(ann_file='{data}/val.json', metric=['bbox', 'proposal'])
test_evaluator = val_evaluator
train_cfg = dict(max_epochs=1)
param_scheduler = [dict(type='MultiStepLR', by_epoch=True, milestones=[1], gamma=0.1, end=9)]
default_hooks = dict(logger=dict(interval=1), checkpoint=dict(max_keep_ckpts=-1))
randomness = dict(seed=0)
"""

SEGMENTATION = """
default_scope = 'mmseg'
custom_imports = dict(imports=['sn_openmmlab'], allow_failed_imports=False)
norm_cfg = dict(type='SN')
model = dict(
    type='EncoderDecoder',
    data_preprocessor=dict(
        type='SegDataPreProcessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        bgr_to_rgb=True,
        pad_val=0,
        seg_pad_val=255,
        size=({height}, {width}),
    ),
    backbone=dict(type='ResNet', depth=18, norm_cfg=norm_cfg),
    decode_head=dict(
        type='FCNHead',
        in_channels=512,
        in_index=3,
        channels=32,
        num_convs=1,
        num_classes=2,
        norm_cfg=norm_cfg,
        loss_decode=dict(type='CrossEntropyLoss'),
    ),
    train_cfg=dict(),
    test_cfg=dict(mode='whole'),
)
load = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')]
dataset = dict(
    type='BaseSegDataset',
    metainfo=dict(classes=('bright', 'dark'), palette=[[255, 255, 0], [0, 0, 128]]),
    data_root='{data}',
    pipeline=[*load, dict(type='PackSegInputs')],
)
train_dataloader = dict(
    batch_size=2,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(data_prefix=dict(img_path='train', seg_map_path='labels/train'), **dataset),
)
val_dataloader = dict(
    batch_size=1,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(data_prefix=dict(img_path='val', seg_map_path='labels/val'), **dataset),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='IoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator
optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.01, momentum=0.9))
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=1, val_interval=1)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
default_hooks = dict(
    logger=dict(type='LoggerHook', interval=1),
    checkpoint=dict(type='CheckpointHook', interval=1, save_best='mIoU', rule='greater'),
    visualization=dict(type='SegVisualizationHook'),
)
visualizer = dict(type='SegLocalVisualizer', vis_backends=[dict(type='LocalVisBackend')])
randomness = dict(seed=0)
"""


CLASSIFICATION = """
_base_ = '{repo}/configs/classification/cifar10/resnet10_sn_1xb16_cifar10.py'

model = dict(head=dict(num_classes=2))
loader = dict(num_workers=0, persistent_workers=False)
dataset = dict(data_root='{data}', indices=None)
train_dataloader = dict(loader, batch_size=4, dataset=dataset)
val_dataloader = dict(loader, batch_size=4, dataset=dict(dataset, data_prefix='val'))
test_dataloader = val_dataloader
del loader, dataset
default_hooks = dict(logger=dict(interval=1))
"""


NO_NETWORK = {
    'http_proxy': 'http://127.0.0.1:9',
    'https_proxy': 'http://127.0.0.1:9',
    'no_proxy': '127.0.0.1,localhost',
}


@pytest.fixture(scope='session', autouse=True)
def no_network() -> Iterator[None]:
    """Fail a test that connects to another machine."""
    connect = socket.socket.connect

    def connect_here(self: socket.socket, address: object) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            assert address[0] in ('127.0.0.1', '::1', 'localhost'), f'connects to {address}'
        connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, 'connect', connect_here)
        for name, value in NO_NETWORK.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope='module', autouse=True)
def runs_of_a_module() -> Iterator[None]:
    """After the tests of a file, take back what the runs of its fixtures leave.

    Fixtures of the session come before this one, so their runs are forgotten, too.
    """
    with run_state.taken_back():
        yield
    run_state.forget()


@pytest.fixture(autouse=True)
def runs_of_a_test() -> Iterator[None]:
    """After a test, take back what its runs leave. Without this the order of tests would matter."""
    with run_state.taken_back():
        yield


@pytest.fixture(scope='session', autouse=True)
def configs_found_once() -> None:
    """Find each config of a toolbox once, if any of the tests imports mmengine."""
    if 'mmengine' in sys.modules:
        find_configs_once()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests that start tools first: last, they would keep one worker busy alone."""
    items.sort(key=lambda item: Path(__file__).parent / 'tools' not in item.path.parents)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[object]:
    """After a test and its fixtures, take back the signal handlers of a tool that ran in them.

    Under the default handler of SIGPIPE, a test that writes to a closed pipe would end pytest.
    """
    before = {number: signal.getsignal(number) for number in signal.valid_signals()}
    ran = yield
    for number, handler in before.items():
        # None is a handler that was not set from Python.
        if handler is not None and signal.getsignal(number) != handler:
            signal.signal(number, handler)
    return ran


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    """Remove the folder of a test that passed: those of all tests would take 7 GB.

    pytest's own `tmp_path_retention_policy` removes it while `monkeypatch` still acts.
    """
    report = yield
    item.stash[FAILED] = report.failed or item.stash.get(FAILED, False)
    # It has none if it was skipped before.
    folder = item.funcargs.get('tmp_path')
    if report.when == 'teardown' and folder and not item.stash[FAILED]:
        shutil.rmtree(folder, ignore_errors=True)
    return report


@pytest.fixture(scope='session')
def repo() -> Path:
    """Return the root folder of this repository."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope='session')
def tool_env(repo: Path) -> dict[str, str]:
    """Return the environment of the tools: this repository's package, and a strict torch.load."""
    env = {name: value for name, value in os.environ.items() if not name.startswith('TORCH_FORCE')}
    path = os.pathsep.join([str(repo), *env.get('PYTHONPATH', '').split(os.pathsep)])
    return {**env, **NO_NETWORK, 'PYTHONPATH': path, 'OMP_NUM_THREADS': '1'}


@pytest.fixture(scope='session')
def run_together(tool_env: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    """Yield a function (commands, env) that runs ``python`` for each command at the same time.

    It returns the finished processes, whose folder was outside this repository. Scripts are forked
    from a process that has imported the toolboxes; ``-c``, ``-m`` and a changed environment need
    new interpreters.
    """
    elsewhere = tmp_path_factory.mktemp('elsewhere')
    warm = WarmProcess(tool_env)

    def run(
        commands: Sequence[Sequence[object]], env: Mapping[str, str] | None = None
    ) -> list[subprocess.CompletedProcess]:
        folder = tmp_path_factory.mktemp('processes')
        jobs = [
            Job(
                args=[str(argument) for argument in command],
                cwd=str(elsewhere),
                env={**tool_env, **(env or {})},
                stdout=str(folder / f'{i}.out'),
                stderr=str(folder / f'{i}.err'),
                limit=LIMIT,
            )
            for i, command in enumerate(commands)
        ]
        forks = CAN_FORK and env is None and all(job['args'][0].endswith('.py') for job in jobs)
        codes = warm.run(jobs) if forks else run_anew(jobs)
        return [
            subprocess.CompletedProcess(
                job['args'], code, *(Path(job[name]).read_text() for name in ('stdout', 'stderr'))
            )
            for job, code in zip(jobs, codes, strict=True)
        ]

    yield run
    warm.close()


@pytest.fixture(scope='session')
def run_tool(run_together: Callable) -> Callable[..., subprocess.CompletedProcess]:
    """Return a function that runs ``python`` with its arguments and checks the exit code."""

    def run(
        *args: object, code: int = 0, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess:
        (done,) = run_together([args], env)
        assert done.returncode == code, done.stdout[-4000:] + done.stderr[-4000:]
        return done

    return run


@pytest.fixture(scope='session')
def released() -> Callable[[str], dict]:
    """Return a function (layout) -> a checkpoint as the authors released it, with drawn weights.

    The layouts are the files in tests/data/released.
    """
    return released_weights.build


@pytest.fixture(scope='session')
def outlined() -> Callable[[str], dict]:
    """Return the same function, faster, for tests of names, shapes and the order of weights."""
    return released_weights.outline


@pytest.fixture(scope='session')
def outlined_file(
    outlined: Callable[[str], dict], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Return a function (layout) -> the outlined checkpoint as a file, which tests only read."""
    folder = tmp_path_factory.mktemp('released')

    def save(layout: str) -> Path:
        file = folder / f'{layout}.pth'
        if not file.exists():
            torch.save(outlined(layout), file)
        return file

    return save


@pytest.fixture(scope='session')
def run_ranks(
    repo: Path, run_together: Callable, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., list]:
    """Return a function that runs ``on_rank(rank, world)`` of a file in each rank.

    Its arguments are the file, the number of ranks and a change of their environment. It returns
    what the ranks returned, in their order: tensors or containers of them.
    """

    def run(file: str, world: int, env: Mapping[str, str] | None = None) -> list:
        folder = tmp_path_factory.mktemp('ranks')
        script = repo / 'tests/rank.py'
        commands = [(script, file, folder, rank, world) for rank in range(world)]
        done = run_together(commands, env)
        logs = '\n'.join(rank.stdout[-4000:] + rank.stderr[-4000:] for rank in done)
        assert [rank.returncode for rank in done] == [0] * world, logs
        return [torch.load(folder / f'{rank}.pt', weights_only=True) for rank in range(world)]

    return run


def _draw_image(rng: np.random.Generator) -> tuple[np.ndarray, list[int], int]:
    """Return a noisy grey image with one bright or dark rectangle, its x, y, w, h and its class."""
    image = rng.integers(96, 160, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    w, h = (int(side) for side in rng.integers(24, 56, 2))
    x, y = int(rng.integers(0, WIDTH - w)), int(rng.integers(0, HEIGHT - h))
    label = int(rng.integers(0, 2))
    image[y : y + h, x : x + w] = (250, 10)[label]
    return image, [x, y, w, h], label


@pytest.fixture(scope='session')
def tiny_coco(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a COCO data set of rectangles: 8 images in ``train.json`` and 4 in ``val.json``."""
    cv2 = pytest.importorskip('cv2')
    root = tmp_path_factory.mktemp('coco')
    (root / 'images').mkdir()
    rng = np.random.default_rng(0)
    for split, count in (('train', 8), ('val', 4)):
        images, boxes = [], []
        for i in range(count):
            image, box, label = _draw_image(rng)
            cv2.imwrite(str(root / 'images' / f'{split}{i}.png'), image)
            images.append(dict(id=i, file_name=f'{split}{i}.png', width=WIDTH, height=HEIGHT))
            area = box[2] * box[3]
            boxes.append(
                dict(id=i + 1, image_id=i, category_id=label, bbox=box, area=area, iscrowd=0)
            )
        categories = [dict(id=0, name='bright'), dict(id=1, name='dark')]
        table = dict(images=images, annotations=boxes, categories=categories)
        (root / f'{split}.json').write_text(json.dumps(table))
    return root


@pytest.fixture(scope='session')
def tiny_maps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a segmentation data set: 4 images in ``train/`` and 2 in ``val/``, with label maps."""
    cv2 = pytest.importorskip('cv2')
    root = tmp_path_factory.mktemp('maps')
    rng = np.random.default_rng(0)
    for split, count in (('train', 4), ('val', 2)):
        for folder in (root / split, root / 'labels' / split):
            folder.mkdir(parents=True)
        for i in range(count):
            image, (x, y, w, h), _ = _draw_image(rng)
            labels = np.zeros((HEIGHT, WIDTH), np.uint8)
            labels[y : y + h, x : x + w] = 1
            cv2.imwrite(str(root / split / f'{i}.jpg'), image)
            cv2.imwrite(str(root / 'labels' / split / f'{i}.png'), labels)
    return root


@pytest.fixture(scope='session')
def tiny_classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a data set of two classes, bright and dark: 4 images of each to train on, 2 to test."""
    cv2 = pytest.importorskip('cv2')
    root = tmp_path_factory.mktemp('classes')
    rng = np.random.default_rng(0)
    for split, count in (('train', 4), ('val', 2)):
        for name, level in (('bright', 150), ('dark', 0)):
            (root / split / name).mkdir(parents=True)
            for i in range(count):
                image = level + rng.integers(0, 100, (32, 32, 3), dtype=np.uint8)
                cv2.imwrite(str(root / split / name / f'{i}.png'), image)
    return root


@pytest.fixture(scope='session')
def classification_config(
    repo: Path, tiny_classes: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Write a config that trains the shipped SN classifier on the bright and dark images."""
    pytest.importorskip('mmpretrain')
    file = tmp_path_factory.mktemp('classification') / 'tiny_classification.py'
    file.write_text(CLASSIFICATION.format(repo=repo, data=tiny_classes))
    return file


@pytest.fixture(scope='session')
def detection_config(repo: Path, tiny_coco: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a config that trains a narrower copy of the shipped SN detector on the rectangles."""
    file = tmp_path_factory.mktemp('detection') / 'tiny_detection.py'
    file.write_text(DETECTION.format(repo=repo, data=tiny_coco, width=WIDTH, height=HEIGHT))
    return file


@pytest.fixture(scope='session')
def segmentation_config(tiny_maps: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a config of MMSegmentation that trains an FCN with SN on the label maps."""
    file = tmp_path_factory.mktemp('segmentation') / 'tiny_segmentation.py'
    file.write_text(SEGMENTATION.format(data=tiny_maps, width=WIDTH, height=HEIGHT))
    return file


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Capture the messages of mmengine's current logger."""
    mmengine_logging = pytest.importorskip('mmengine.logging')
    logger = mmengine_logging.MMLogger.get_current_instance()
    logger.addHandler(caplog.handler)
    with caplog.at_level(logging.INFO, logger.name):
        yield caplog
    logger.removeHandler(caplog.handler)


@pytest.fixture
def set_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Yield a function (backend, gpu_check) that sets what the package reads, and reads it anew.

    Before it is called, and for what is None, the variables are not set.
    """
    from sn_openmmlab.ops import environment

    def change(backend: str | None = None, gpu_check: str | None = None) -> None:
        for name, value in {environment.BACKEND: backend, environment.GPU_CHECK: gpu_check}.items():
            monkeypatch.delenv(name, raising=False)
            if value is not None:
                monkeypatch.setenv(name, value)
        forget()

    def forget() -> None:
        environment.backend_choice.cache_clear()
        environment.checks_gpu.cache_clear()

    change()
    yield change
    forget()


@pytest.fixture
def on_fake_gpu(set_environment: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the CPU pass for a GPU with Triton, of which nothing is known yet."""
    from sn_openmmlab.ops import backends, self_check

    monkeypatch.setattr(backends, '_is_for_triton', lambda x: True)
    monkeypatch.setattr(backends, '_triton_version', lambda: (3, 6))
    monkeypatch.setattr(self_check, '_found', {})
    monkeypatch.setattr(self_check, '_failed', {})
    monkeypatch.setattr(self_check, '_captured', set())


@pytest.fixture
def write_config(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that writes its text to a config file."""

    def write(text: str) -> Path:
        file = tmp_path / 'written_config.py'
        file.write_text(text)
        return file

    return write


@pytest.fixture
def convert(
    repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> Callable[..., tuple[int, str, str]]:
    """A function that runs tools/convert_checkpoint.py; returns exit code, stdout and stderr."""

    def run(*args: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, 'argv', ['convert_checkpoint.py', *map(str, args)])
        try:
            runpy.run_path(str(repo / 'tools/convert_checkpoint.py'), run_name='__main__')
            code = 0
        except SystemExit as error:
            code = error.code
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def mmseg_scope() -> Iterator[None]:
    """Set MMSegmentation as the default scope, as at the start of a run of it."""
    pytest.importorskip('mmseg')
    from mmengine.registry import DefaultScope

    with DefaultScope.overwrite_default_scope('mmseg'):
        yield
