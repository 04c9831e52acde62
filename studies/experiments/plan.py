"""The trainings of an experiment."""

from dataclasses import dataclass
from typing import Any

# Box AP on the demo data varies by several points between seeds.
SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Run:
    """One training.

    Attributes:
        variant: the name of what is compared, as `'sn'`.
        batch: images per step.
        seed: of the weights and of the order of the images.
        config: the config file.
        options: changes to the config by dotted key, batch and seed included.
    """

    variant: str
    batch: int
    seed: int
    config: str
    options: dict[str, Any]

    @property
    def name(self) -> str:
        """Return the name of its work folder."""
        return f'{self.variant}_b{self.batch}_s{self.seed}'


def small_batch_runs() -> list[Run]:
    """Return BN, GN and SN from scratch at two images a step, and SN at one and four (Fig. 4)."""
    cases = [('bn', 2), ('gn', 2), ('sn', 2), ('sn', 1), ('sn', 4)]
    return [_small_batch_run(norm, batch, seed) for seed in SEEDS for norm, batch in cases]


def _small_batch_run(norm: str, batch: int, seed: int) -> Run:
    """Return a run over as many images as all others, with a learning rate linear in the batch."""
    return Run(
        variant=norm,
        batch=batch,
        seed=seed,
        config=f'configs/demo/faster-rcnn_r18_fpn_{norm}-all_digits.py',
        options={
            'train_dataloader.batch_size': batch,
            'optim_wrapper.optimizer.lr': 0.01 * batch,
            'randomness.seed': seed,
            'param_scheduler.0.end': 200 // batch,
            'default_hooks.logger.interval': 40 // batch,
        },
    )
