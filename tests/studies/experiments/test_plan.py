"""The plan of the small-batch experiment: what it says it compares, and nothing else."""

from copy import deepcopy
from pathlib import Path

import pytest
from mmengine.config import Config

from studies.experiments.plan import Run, small_batch_runs


@pytest.fixture(scope='module')
def configs(repo: Path) -> list[tuple[Run, Config]]:
    """The runs with their configs as changed by their options."""
    runs = small_batch_runs()
    files = {file: Config.fromfile(repo / file) for file in {run.config for run in runs}}
    pairs = [(run, deepcopy(files[run.config])) for run in runs]
    for run, config in pairs:
        config.merge_from_dict(run.options)
    return pairs


def test_three_seeds_of_five_cases() -> None:
    cases = ('bn_b2', 'gn_b2', 'sn_b2', 'sn_b1', 'sn_b4')
    expected = {f'{case}_s{seed}' for case in cases for seed in (0, 1, 2)}
    names = [run.name for run in small_batch_runs()]
    assert set(names) == expected
    assert len(names) == 15


def test_learning_rate_is_linear_in_the_batch_over_equally_many_images(configs: list) -> None:
    for run, config in configs:
        batch = config.train_dataloader.batch_size
        assert batch == run.batch
        assert config.randomness.seed == run.seed
        assert config.train_cfg.max_epochs == 4
        assert config.optim_wrapper.optimizer.lr / batch == pytest.approx(0.02 / 2)
        assert config.param_scheduler[0].end * batch == 200
        assert config.default_hooks.logger.interval * batch == 40


def test_two_runs_of_a_batch_differ_in_the_norm_and_the_seed_alone(configs: list) -> None:
    def without(settings: object) -> object:
        if isinstance(settings, dict):
            kept = {k: v for k, v in settings.items() if k not in ('norm_cfg', 'seed')}
            return {key: without(value) for key, value in kept.items()}
        return [without(item) for item in settings] if isinstance(settings, list) else settings

    rest = [without(config.to_dict()) for run, config in configs if run.batch == 2]
    assert len(rest) == 9
    assert all(settings == rest[0] for settings in rest)
