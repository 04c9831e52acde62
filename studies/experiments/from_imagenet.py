"""The experiment from ImageNet weights with BatchNorm to SN: its runs, tables and figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmengine.config import Config

from studies.experiments.efficientnet_lite import MEAN, STAGES, STD
from studies.experiments.plan import SEEDS, Run
from studies.experiments.records import Record
from studies.presentation.experiment_tables import batch_ratio_table, metric_table, page
from studies.presentation.figures import draw_final_ap
from studies.presentation.markdown import group_by
from studies.presentation.output import make_folder

BASE = 'configs/detection/bccd/faster-rcnn_r18_fpn_sn-all_scratch_bccd.py'
BATCH = 2


@dataclass(frozen=True)
class Photographs:
    """A data set and its training.

    Attributes:
        folder: below ``data/``.
        classes: their names.
        images: the number of training images.
        scale: the longest width and height after resizing.
        epochs: of a training.
        starts: the keys of `STARTS` to try; None for all.
    """

    folder: str
    classes: tuple[str, ...]
    images: int
    scale: tuple[int, int]
    epochs: int
    starts: tuple[str, ...] | None = None

    @property
    def prefix(self) -> str:
        """Return the beginning of the names of its runs."""
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

_TITLES = ('backbone',)
# The options of each variant.
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
    """Return the config of all runs on a data set: the small detector on EfficientNet-Lite0."""
    config = Config.fromfile(BASE)
    config.custom_imports.imports = ['sn_openmmlab', 'studies.experiments.efficientnet_lite']
    model = config.model
    model.backbone = dict(type='EfficientNetLite', norm='SN', start=dict(batch_ratio=0.9))
    model.neck.in_channels = list(STAGES.values())
    model.data_preprocessor.update(mean=[MEAN] * 3, std=[STD] * 3)
    model.roi_head.bbox_head.num_classes = len(data.classes)
    # Half of the base's: the photographs show few objects.
    model.train_cfg.rcnn.sampler.num = 64
    for settings in (model.train_cfg.rpn_proposal, model.test_cfg.rpn):
        settings.max_per_img = 100
    _use_data(config, data)
    config.merge_from_dict(_schedule(data))
    return config


def fine_tunings(config: str, data: Photographs) -> list[Run]:
    """Return the runs of a config: each start of the backbone, with three seeds.

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
    """Return options: validate at the end, and divide the learning rate by ten twice, as in 1x."""
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
    """Write the configs that the runs read, and return the runs.

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
    """Return every table of the experiment as a Markdown page."""
    parts = []
    for data in DATA:
        shown = _trained_on(data, records)
        parts += [
            f'## {data.folder}: box AP after the last epoch (%)',
            metric_table(shown, _TITLES, _row),
            "## The backbone's importance ratios of `bn`, averaged over its layers",
            batch_ratio_table(shown, _TITLES, _row),
        ]
    title = 'From ImageNet weights with BatchNorm to SN: fine-tuning at two images a step'
    return page(title, records, machine, parts)


def draw_figures(records: Sequence[Record], folder: Path) -> None:
    """Draw `ap_NAME.png` of each data set: the AP of each seed and their mean, by the start."""
    for data in DATA:
        groups = group_by(_trained_on(data, records), lambda record: _row(record)[0])
        draw_final_ap(groups, folder / f'ap_{data.folder}.png')


def _trained_on(data: Photographs, records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.variant.startswith(data.prefix)]


def _row(record: Record) -> tuple[str]:
    return (TITLES[record.variant.partition('-')[2]],)
