"""The experiment from real ImageNet weights with BatchNorm to SN: what to fine-tune on what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmengine.config import Config

from studies.experiments.efficientnet_lite import MEAN, STAGES, STD
from studies.experiments.folders import make_folder
from studies.experiments.plan import SEEDS, Run
from studies.experiments.records import Record
from studies.presentation.experiment_tables import AP, batch_ratio_table, by_case, start_table
from studies.presentation.figures import draw_points

BASE = 'configs/detection/bccd/faster-rcnn_r18_fpn_sn-all_scratch_bccd.py'
BATCH = 2


@dataclass(frozen=True)
class Photographs:
    """A data set, and how it is trained on.

    Attributes:
        folder: below ``data/``.
        classes: their names.
        images: how many there are to train on.
        scale: the longest width and height that they are resized to.
        epochs: how often they are seen.
        starts: keys of ``STARTS``, those that are tried; None for all.
    """

    folder: str
    classes: tuple[str, ...]
    images: int
    scale: tuple[int, int]
    epochs: int
    starts: tuple[str, ...] | None = None

    @property
    def prefix(self) -> str:
        """What the names of its runs start with."""
        return f'{self.folder}-'


RACCOON = Photographs('raccoon', ('raccoon',), 150, (224, 224), 4)
BCCD = Photographs(
    'bccd',
    ('RBC', 'WBC', 'Platelets'),
    205,
    (224, 168),
    1,
    ('frozen-bn', 'sn-0.90', 'sn-0.99'),
)

DATA = (RACCOON, BCCD)

_METRICS = {'AP': AP, 'AP50': f'{AP}_50', 'AP75': f'{AP}_75'}
# What differs, by the name of the variant.
STARTS: dict[str, dict[str, Any]] = {
    'frozen-bn': {'model.backbone.norm': 'frozen-BN'},
    'bn': {'model.backbone.norm': 'BN'},
    'gn': {'model.backbone.norm': 'GN'},
    'sn-0.90': {'model.backbone.start.batch_ratio': 0.9},
    'sn-0.99': {'model.backbone.start.batch_ratio': 0.99},
    'sn-0.90-fitted': {'model.backbone.start.batch_ratio': 0.9, 'fitted': True},
}
TITLES = {
    'frozen-bn': 'frozen BN',
    'bn': 'BN that trains',
    'gn': 'GN, new',
    'sn-0.90': 'SN, `bn` at 0.90',
    'sn-0.99': 'SN, `bn` at 0.99',
    'sn-0.90-fitted': 'SN, `bn` at 0.90, fitted',
}


def fine_tuning_config(data: Photographs) -> Config:
    """The config that all runs on a data set share: the small detector on EfficientNet-Lite0."""
    config = Config.fromfile(BASE)
    config.custom_imports.imports = ['sn_openmmlab', 'studies.experiments.efficientnet_lite']
    model = config.model
    model.backbone = dict(type='EfficientNetLite', norm='SN', start=dict(batch_ratio=0.9))
    model.neck.in_channels = list(STAGES.values())
    model.data_preprocessor.update(mean=[MEAN] * 3, std=[STD] * 3)
    model.roi_head.bbox_head.num_classes = len(data.classes)
    # Half of what the base takes: the photographs show few objects.
    model.train_cfg.rcnn.sampler.num = 64
    for settings in (model.train_cfg.rpn_proposal, model.test_cfg.rpn):
        settings.max_per_img = 100
    _use_data(config, data)
    config.merge_from_dict(_schedule(data))
    return config


def fine_tunings(config: str, data: Photographs) -> list[Run]:
    """Runs of that config with each start of the backbone and three seeds.

    They differ in the backbone alone; FPN and head have SN and start from random weights.
    """
    runs = []
    for seed in SEEDS:
        for variant in data.starts or STARTS:
            options = {**STARTS[variant], 'randomness.seed': seed}
            if options.pop('fitted', False):
                options['model.backbone.fit_to'] = f'data/{data.folder}/images'
            runs.append(Run(data.prefix + variant, BATCH, seed, config, options))
    return runs


def _use_data(config: Config, data: Photographs) -> None:
    root = f'data/{data.folder}/'
    for name in ('train', 'val', 'test'):
        dataset = config[f'{name}_dataloader'].dataset
        dataset.data_root = root
        dataset.metainfo = dict(classes=data.classes)
        for step in dataset.pipeline:
            if step['type'] == 'Resize':
                step['scale'] = data.scale
            if step['type'] == 'RandomFlip':
                step.update(prob=0.5, direction='horizontal')
    config.test_dataloader.dataset.ann_file = config.val_dataloader.dataset.ann_file
    for name in ('val', 'test'):
        config[f'{name}_evaluator'].ann_file = f'{root}annotations/val.json'


def _schedule(data: Photographs) -> dict[str, Any]:
    """A validation at the end; the learning rate falls to a tenth twice, as in a 1x schedule."""
    steps = data.epochs * data.images // BATCH
    fall = {'by_epoch': False, 'milestones': [steps * 2 // 3, steps * 8 // 9], 'end': steps}
    return {
        'max_epochs': data.epochs,
        'train_cfg.max_epochs': data.epochs,
        'train_cfg.val_interval': data.epochs,
        'param_scheduler.0.end': 50,
        **{f'param_scheduler.1.{key}': value for key, value in fall.items()},
    }


def prepare(work_dir: Path) -> list[Run]:
    """Write the configs where the runs read them, and return the runs.

    Raises:
        UsageError: the folder cannot be written.
    """
    make_folder(work_dir)
    runs = []
    for data in DATA:
        file = work_dir / f'{data.folder}.py'
        fine_tuning_config(data).dump(file)
        runs += fine_tunings(str(file), data)
    return runs


def all_tables(records: Sequence[Record], machine: Mapping[str, Any]) -> str:
    """Every table of the experiment as a Markdown page."""
    seeds = len({record.seed for record in records})
    parts = [
        '# From ImageNet weights with BatchNorm to SN: fine-tuning at two images a step',
        f'{machine["device"]}, threads of each training: {machine["threads"]}, torch '
        f'{machine["torch"]}; mean ± sample standard deviation over {seeds} seeds.',
    ]
    for data in DATA:
        groups = _groups(records, data)
        parts += [
            f'## {data.folder}: box AP after the last epoch (%)',
            start_table(['backbone'], groups, _METRICS),
            "## The backbone's importance ratios of `bn`, averaged over its layers",
            batch_ratio_table(['backbone'], groups),
        ]
    return '\n\n'.join(parts)


def draw_figures(records: Sequence[Record], folder: Path) -> None:
    """Draw ``ap_NAME.png`` of each data set: the AP of each seed and their mean, by the start."""
    for data in DATA:
        groups = {
            cells[0].replace('`', ''): [100 * record.metrics[AP][-1] for record in group]
            for cells, group in _groups(records, data).items()
        }
        draw_points(groups, 'validation box AP (%)', folder / f'ap_{data.folder}.png')


def _groups(records: Sequence[Record], data: Photographs) -> dict[tuple[str], list[Record]]:
    return {
        (TITLES[variant.removeprefix(data.prefix)],): group
        for (variant, _), group in by_case(records).items()
        if variant.startswith(data.prefix)
    }
