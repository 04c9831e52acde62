"""The trainings of the experiment on the paper's claims: CIFAR-10, on simulated GPUs."""

from pathlib import Path
from typing import Any

from mmengine.config import Config

from studies.experiments.plan import SEEDS, Run
from studies.presentation.output import make_folder

_BASE = 'configs/classification/cifar10/resnet10_sn_1xb16_cifar10.py'
# Images of each step, over all simulated GPUs.
TOTAL = 64
PER_GPU = (1, 2, 4, 32)
# Images per GPU where the settings of SN are compared.
SMALL = 2
EPOCHS = 6
STEPS_PER_EPOCH = 50000 // TOTAL
_CHANNELS = 24
_RATE, _DECAY = 0.2, 5e-4
# Changes of λ and λ′ alone, as mmengine's `paramwise_cfg`.
CONTROLS = {
    'sn-rate-x10': dict(lr_mult=10),
    'sn-rate-x0.1': dict(lr_mult=0.1),
    'sn-no-decay': dict(decay_mult=0),
}


def norm_of(variant: str, per_gpu: int) -> dict[str, Any]:
    """Return the `norm_cfg` of a variant with some images per GPU."""
    gpus = TOTAL // per_gpu
    sn = dict(type='SimulatedSN', gpus=gpus)
    norms = {
        'sn': sn,
        **dict.fromkeys(CONTROLS, sn),
        'bn': dict(type='SimulatedBN', gpus=gpus),
        # The bounds are those that the SN paper used at (8,4). The layer is BatchNorm in the first
        # eighth of the steps, as in the paper of BRN, and has its final bounds by the middle.
        'brn': dict(
            type='SimulatedBRN',
            gpus=gpus,
            r_max=1.5,
            d_max=0.5,
            begin=EPOCHS * STEPS_PER_EPOCH // 8,
            d_end=EPOCHS * STEPS_PER_EPOCH * 3 // 8,
            r_end=EPOCHS * STEPS_PER_EPOCH // 2,
        ),
        'gn': dict(type='GN', num_groups=8),
        'ln': dict(type='GN', num_groups=1),
        'in': dict(type='IN', affine=True),
        'sn-in-ln': dict(type='SN', scopes=('in', 'ln')),
        'sn-gn': {**sn, 'scopes': ('in', 'gn', 'bn'), 'num_groups': 8},
        'sn-correction': {**sn, 'correction': 1},
    }
    return norms[variant]


# Their statistics are those of each image alone.
SINGLE = ('gn', 'sn-in-ln', 'ln', 'in')
SETTINGS = (*CONTROLS, 'sn-gn', 'sn-correction')


def training_config(variant: str, per_gpu: int) -> Config:
    """Return the config of the runs of a variant with some images per GPU."""
    config = Config.fromfile(_BASE)
    names = ('simulated_gpus', 'cifar_images', 'thin_resnet')
    config.custom_imports.imports = [
        'sn_openmmlab',
        *(f'studies.experiments.{name}' for name in names),
    ]
    config.model.backbone = dict(
        type='ThinResNet',
        depth=10,
        num_stages=3,
        strides=(1, 2, 2),
        dilations=(1, 1, 1),
        out_indices=(2,),
        stem_channels=_CHANNELS,
        base_channels=_CHANNELS,
        norm_cfg=norm_of(variant, per_gpu),
    )
    config.model.head.in_channels = 4 * _CHANNELS
    config.train_dataloader = _loader('train', TOTAL, augment=True)
    config.val_dataloader = config.test_dataloader = _loader('test', 250, augment=False)
    config.optim_wrapper = _optimizer(variant)
    config.param_scheduler = _schedule(EPOCHS * STEPS_PER_EPOCH)
    config.max_epochs = config.train_cfg.max_epochs = EPOCHS
    config.default_hooks.logger.interval = 100
    config.default_hooks.checkpoint.update(
        interval=1, max_keep_ckpts=-1, save_optimizer=False, save_param_scheduler=False
    )
    return config


def _loader(part: str, batch: int, augment: bool) -> dict[str, Any]:
    return dict(
        batch_size=batch,
        num_workers=0,
        drop_last=augment,
        sampler=dict(type='DefaultSampler', shuffle=augment),
        collate_fn=dict(type='whole_batch'),
        dataset=dict(type='CifarImages', root=f'data/cifar10/{part}', augment=augment),
    )


def _optimizer(variant: str) -> dict[str, Any]:
    sgd = dict(type='SGD', lr=_RATE, momentum=0.9, nesterov=True, weight_decay=_DECAY)
    change = CONTROLS.get(variant)
    if change is None:
        return dict(optimizer=sgd)
    keys = {name: change for name in ('mean_weight', 'var_weight')}
    return dict(optimizer=sgd, paramwise_cfg=dict(custom_keys=keys))


def _schedule(steps: int) -> list[dict[str, Any]]:
    """Return a rise of the learning rate over an eighth of the steps and a fall to 0, linear."""
    top = steps // 8
    rise = dict(type='LinearLR', start_factor=0.05, by_epoch=False, begin=0, end=top)
    fall = dict(type='LinearLR', end_factor=0.01, start_factor=1, by_epoch=False)
    return [rise, {**fall, 'begin': top, 'end': steps}]


def planned_runs(work_dir: Path) -> list[Run]:
    """Return the runs, whose configs are in a folder."""
    over_gpus = [(name, n) for n in (32, *PER_GPU[:-1]) for name in ('sn', 'bn')]
    over_gpus += [('brn', n) for n in PER_GPU]
    return [
        Run(variant, n, seed, str(_file(variant, n, work_dir)), {'randomness.seed': seed})
        for seed in SEEDS
        for variant, n in (*over_gpus, *((name, SMALL) for name in (*SINGLE, *SETTINGS)))
    ]


def prepare(work_dir: Path) -> list[Run]:
    """Write the configs that the runs read, and return the runs."""
    make_folder(work_dir)
    runs = planned_runs(work_dir)
    for variant, per_gpu in {(run.variant, run.batch) for run in runs}:
        training_config(variant, per_gpu).dump(_file(variant, per_gpu, work_dir))
    return runs


def _file(variant: str, per_gpu: int, work_dir: Path) -> Path:
    return work_dir / f'{variant}_b{per_gpu}.py'
