"""A small demo data set, and work folders of runs with a model whose ratios are known."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS
from torch import nn

from sn_openmmlab.layers.switch_norm import SwitchNorm
from studies.demo.dataset import DemoParameters, make_demo_data
from studies.experiments.plan import Run
from studies.experiments.records import Record

SCALARS = """
{"loss": 2.0, "loss_cls": 1.5, "step": 20}
{"coco/bbox_mAP": 0.25, "coco/bbox_mAP_50": 0.5, "coco/bbox_mAP_75": 0.2, "time": 0.1, "step": 1}
{"loss": 1.0, "loss_cls": 0.5, "step": 40}
{"coco/bbox_mAP": 0.5, "coco/bbox_mAP_50": 0.75, "coco/bbox_mAP_75": 0.4, "time": 0.1, "step": 2}
"""
# The control parameters λ and λ′ of each layer, as numbers whose shares are the ratios.
LAYERS = {
    'backbone.0': ((1, 2, 3), (1, 1, 1)),
    'backbone.1': ((1, 1, 2), (1, 1, 1)),
    'neck': ((2, 1, 1), (1, 1, 1)),
    'roi_head.bbox_head': ((1, 1, 1), (1, 2, 1)),
}


class FourLayers(nn.Module):
    """A model with the norms that LAYERS names."""

    def __init__(self, norm: str) -> None:
        super().__init__()
        layer = SwitchNorm if norm == 'sn' else nn.BatchNorm2d
        self.backbone = nn.Sequential(layer(2), layer(2))
        self.neck = layer(2)
        self.roi_head = nn.ModuleDict({'bbox_head': layer(2)})


@pytest.fixture
def four_layers() -> Iterator[None]:
    MODELS.register_module(module=FourLayers)
    yield
    MODELS.module_dict.pop('FourLayers')


@pytest.fixture
def make_run(four_layers: None, tmp_path: Path) -> Callable[..., Run]:
    """A function (variant, batch, seed) -> a run of a config with the last two as its options."""
    (tmp_path / 'configs').mkdir()

    def make(variant: str = 'sn', batch: int = 2, seed: int = 0) -> Run:
        options = {'train_dataloader.batch_size': batch, 'schedule.0.seed': seed}
        settings = dict(
            default_scope='mmdet',
            model=dict(type='FourLayers', norm=variant),
            train_dataloader=dict(batch_size=8),
            schedule=[dict(seed=None), dict(milestones=(3,))],
        )
        config = tmp_path / 'configs' / f'{variant}_digits.py'
        Config(settings).dump(config)
        return Run(variant, batch, seed, str(config), options)

    return make


@pytest.fixture
def write_trained_config() -> Callable[[Run, Path], None]:
    """A function that writes the config of a run as mmengine does, into an existing folder."""

    def write(run: Run, folder: Path) -> None:
        config = Config.fromfile(run.config)
        config.merge_from_dict(
            {
                'train_dataloader.batch_size': run.batch,
                'schedule.0.seed': run.seed,
                'launcher': 'none',
                'work_dir': '/elsewhere',
            }
        )
        config.dump(folder / Path(run.config).name)

    return write


@pytest.fixture
def finish(
    four_layers: None, write_trained_config: Callable[[Run, Path], None]
) -> Callable[[Run, Path], Path]:
    """A function (run, work_dir) that makes the work folder of a training of two epochs."""

    def make(run: Run, work_dir: Path) -> Path:
        folder = work_dir / run.name
        log = folder / '20260101_000000' / 'vis_data'
        log.mkdir(parents=True)
        (log / 'scalars.json').write_text(SCALARS.strip())
        write_trained_config(run, folder)
        state = FourLayers(run.variant).state_dict()
        if run.variant == 'sn':
            for name, (mean, var) in LAYERS.items():
                state[f'{name}.mean_weight'] = torch.tensor(mean).log()
                state[f'{name}.var_weight'] = torch.tensor(var).log()
        torch.save({'state_dict': state}, folder / 'epoch_2.pth')
        # Where it was trained, before the folder was moved here.
        (folder / 'last_checkpoint').write_text('/elsewhere/epoch_2.pth')
        (folder / 'done').touch()
        return folder

    return make


@pytest.fixture
def make_record() -> Callable[..., Record]:
    """A function (variant, batch, seed, AP by epoch, (in, ln, bn) of w) -> a record."""

    def make(
        variant: str,
        batch: int,
        seed: int,
        aps: tuple[float, ...],
        mean: tuple[float, float, float] = (0.5, 0.3, 0.2),
    ) -> Record:
        metrics = {'coco/bbox_mAP': list(aps), 'coco/bbox_mAP_50': [2 * ap for ap in aps]}
        metrics['coco/bbox_mAP_75'] = [ap / 2 for ap in aps]
        scopes = ('in', 'ln', 'bn')
        ratios = {'mean': dict(zip(scopes, mean, strict=True)), 'var': dict.fromkeys(scopes, 1 / 3)}
        parts = ('backbone', 'neck', 'bbox_head', 'all') if variant == 'sn' else ()
        return Record(variant, batch, seed, metrics, {part: ratios for part in parts})

    return make


@pytest.fixture(scope='session')
def demo_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo data of six train and three val images."""
    root = tmp_path_factory.mktemp('shared') / 'demo'
    make_demo_data(root, DemoParameters(train=6, val=3, seed=3))
    return root
