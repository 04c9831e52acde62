"""The experiment from BatchNorm to SN: its runs, tables and figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmengine.config import Config

from studies.experiments.digit_classifier import ensure_classifier
from studies.experiments.lock import locked
from studies.experiments.plan import SEEDS, Run
from studies.experiments.records import Record
from studies.presentation.experiment_tables import batch_ratio_table, metric_table, page
from studies.presentation.figures import draw_final_ap
from studies.presentation.markdown import group_by
from studies.presentation.output import make_folder

BASE = 'configs/demo/faster-rcnn_r18_fpn_sn-all_digits.py'
RATIOS = (1 / 3, 0.6, 0.9, 1)
BATCH = 2
IMAGES = 400
EPOCHS, LONG_EPOCHS = 2, 4
_LONG = '-long'
_TITLES = ('backbone', 'epochs')


def fine_tuning_config(classifier: Path) -> Config:
    """Return the config that all runs share: the quickstart's, shorter, from a classifier."""
    config = Config.fromfile(BASE)
    config.model.backbone.init_cfg = dict(
        type='SNPretrained', checkpoint=str(classifier), batch_ratio=RATIOS[0]
    )
    config.train_dataloader.batch_size = BATCH
    config.merge_from_dict(schedule(EPOCHS))
    return config


def schedule(length: int) -> dict[str, Any]:
    """Return the options of a training of `length` epochs that is validated at its end.

    The learning rate warms up over the first quarter of the steps and falls to a tenth for the
    last quarter.
    """
    steps = length * IMAGES // BATCH
    fall = {'by_epoch': False, 'milestones': [steps * 3 // 4], 'end': steps}
    return {
        'max_epochs': length,
        'train_cfg.max_epochs': length,
        'train_cfg.val_interval': length,
        'param_scheduler.0.end': steps // 4,
        **{f'param_scheduler.1.{key}': value for key, value in fall.items()},
    }


def fine_tunings(config: str) -> list[Run]:
    """Return the runs of a config: each ratio, frozen BN and random weights, with three seeds.

    They differ in the backbone alone; FPN and heads have SN and start from random weights. One of
    the ratios and its baselines are also trained twice as long.
    """
    backbone = 'model.backbone'
    cases: dict[str, dict[str, Any]] = {
        'scratch': {f'{backbone}.init_cfg': None},
        'frozen-bn': {
            f'{backbone}.norm_cfg.type': 'BN',
            f'{backbone}.norm_cfg.requires_grad': False,
            f'{backbone}.norm_eval': True,
        },
    }
    for ratio in RATIOS:
        cases[f'sn-{ratio:.2f}'] = {f'{backbone}.init_cfg.batch_ratio': ratio}
    longer = schedule(LONG_EPOCHS)
    for variant in ('scratch', 'frozen-bn', 'sn-0.90'):
        cases[variant + _LONG] = {**cases[variant], **longer}
    return [
        Run(variant, BATCH, seed, config, {**options, 'randomness.seed': seed})
        for seed in SEEDS
        for variant, options in cases.items()
    ]


def prepare(work_dir: Path) -> list[Run]:
    """Train the classifier unless its file exists, write the config, and return the runs.

    Raises:
        UsageError: the folder cannot be written or is in use, or holds another classifier.
    """
    make_folder(work_dir)
    classifier, file = work_dir / 'classifier.pth', work_dir / 'fine_tuning.py'
    config = fine_tuning_config(classifier)
    with locked(work_dir):
        print(f'The classifier {classifier} is trained first if it is missing.', flush=True)
        accuracy = ensure_classifier(config.model, classifier)
        config.dump(file)
    print(f'Its accuracy on the digits of other writers is {100 * accuracy:.1f} %.', flush=True)
    return fine_tunings(str(file))


def title(variant: str) -> str:
    """Return the name of a variant's backbone in tables and figures."""
    variant = variant.removesuffix(_LONG)
    kind, _, ratio = variant.partition('-')
    titles = {'scratch': 'SN from scratch', 'frozen-bn': 'frozen BN'}
    return titles.get(variant) or f'{kind.upper()}, `bn` at {ratio}'


def epochs(variant: str) -> int:
    """Return how many epochs a variant is trained for."""
    return LONG_EPOCHS if variant.endswith(_LONG) else EPOCHS


def all_tables(records: Sequence[Record], machine: Mapping[str, Any]) -> str:
    """Return every table of the experiment as a Markdown page."""
    parts = [
        '## Box AP after the last epoch (%)',
        metric_table(records, _TITLES, _row),
        "## The backbone's importance ratios of `bn`, averaged over its layers",
        batch_ratio_table(records, _TITLES, _row),
    ]
    heading = 'From BatchNorm to SN: fine-tuning a detector at two images a step'
    return page(heading, records, machine, parts)


def draw_figures(records: Sequence[Record], folder: Path) -> None:
    """Draw `ap.png`: the AP of each seed and their mean, by how the backbone started."""
    groups = group_by(records, lambda record: '{}, {} epochs'.format(*_row(record)))
    draw_final_ap(groups, folder / 'ap.png')


def _row(record: Record) -> tuple[str, str]:
    return title(record.variant), str(epochs(record.variant))
