"""The experiment from BatchNorm to SN: what to fine-tune, and its tables and pictures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmengine.config import Config

from studies.experiments.digit_classifier import ensure_classifier
from studies.experiments.folders import make_folder
from studies.experiments.lock import locked
from studies.experiments.plan import SEEDS, Run
from studies.experiments.records import Record
from studies.presentation.experiment_tables import AP, batch_ratio_table, by_case, start_table
from studies.presentation.figures import draw_points

BASE = 'configs/demo/faster-rcnn_r18_fpn_sn-all_digits.py'
RATIOS = (1 / 3, 0.6, 0.9, 1)
BATCH = 2
IMAGES = 400
EPOCHS, LONG_EPOCHS = 2, 4
_LONG = '-long'
_COLUMNS = ('backbone', 'epochs')
_METRICS = {'AP': AP, 'AP50': f'{AP}_50', 'AP75': f'{AP}_75'}


def fine_tuning_config(classifier: Path) -> Config:
    """The config that all runs share: the quickstart's, shorter, from a classifier."""
    config = Config.fromfile(BASE)
    config.model.backbone.init_cfg = dict(
        type='SNPretrained', checkpoint=str(classifier), batch_ratio=RATIOS[0]
    )
    config.train_dataloader.batch_size = BATCH
    config.merge_from_dict(schedule(EPOCHS))
    return config


def schedule(length: int) -> dict[str, Any]:
    """Options of a training of so many epochs: a validation at its end, and the learning rate.

    It warms up over the first quarter of the steps and falls to a tenth for the last.
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
    """Runs of that config, each ratio, frozen BN and random weights, with three seeds.

    They differ in the backbone alone; FPN and heads have SN and start from random weights. One of
    the ratios and its rivals are trained twice as long too.
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
    """Train the classifier and write the config, where they are not there, and return the runs.

    Raises:
        UsageError: the folder cannot be written or is in use, or holds another classifier.
    """
    make_folder(work_dir)
    classifier, file = work_dir / 'classifier.pth', work_dir / 'fine_tuning.py'
    config = fine_tuning_config(classifier)
    with locked(work_dir):
        print(f'The classifier, {classifier}, is trained first where it is not there.', flush=True)
        accuracy = ensure_classifier(config.model, classifier)
        config.dump(file)
    print(f'It knows {100 * accuracy:.1f} % of the digits of other writers.', flush=True)
    return fine_tunings(str(file))


def title(variant: str) -> str:
    """What the backbone of a variant is called in tables and pictures."""
    variant = variant.removesuffix(_LONG)
    kind, _, ratio = variant.partition('-')
    titles = {'scratch': 'SN from scratch', 'frozen-bn': 'frozen BN'}
    return titles.get(variant) or f'{kind.upper()}, `bn` at {ratio}'


def epochs(variant: str) -> int:
    """How long a variant is trained."""
    return LONG_EPOCHS if variant.endswith(_LONG) else EPOCHS


def all_tables(records: Sequence[Record], machine: Mapping[str, Any]) -> str:
    """Every table of the experiment as a Markdown page."""
    seeds = len({record.seed for record in records})
    return '\n\n'.join(
        [
            '# From BatchNorm to SN: fine-tuning a detector at two images a step',
            f'{machine["device"]}, threads of each training: {machine["threads"]}, torch '
            f'{machine["torch"]}; mean ± sample standard deviation over {seeds} seeds.',
            '## Box AP after the last epoch (%)',
            start_table(_COLUMNS, _groups(records), _METRICS),
            "## The backbone's importance ratios of `bn`, averaged over its layers",
            batch_ratio_table(_COLUMNS, _groups(records)),
        ]
    )


def draw_figures(records: Sequence[Record], folder: Path) -> None:
    """Draw ``ap.png``: the AP of each seed and their mean, by how the backbone started."""
    groups = {
        f'{title(variant)}, {epochs(variant)} epochs': [100 * r.metrics[AP][-1] for r in group]
        for (variant, _), group in by_case(records).items()
    }
    groups = {label.replace('`', ''): values for label, values in groups.items()}
    draw_points(groups, 'validation box AP (%)', folder / 'ap.png')


def _groups(records: Sequence[Record]) -> dict[tuple[str, str], list[Record]]:
    return {
        (title(variant), str(epochs(variant))): group
        for (variant, _), group in by_case(records).items()
    }
