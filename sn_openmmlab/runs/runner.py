"""Building mmengine's runner for training and testing."""

from collections.abc import Mapping
from pathlib import Path

from mmengine.config import Config
from mmengine.registry import METRICS, RUNNERS
from mmengine.runner import Runner

from sn_openmmlab.hooks.finite_weights_hook import FiniteWeightsHook
from sn_openmmlab.hooks.norm_check_hook import NormCheckHook
from sn_openmmlab.runs.build_errors import building
from sn_openmmlab.runs.data.checked_loading import with_checked_loading
from sn_openmmlab.runs.data.checked_step import with_checked_steps


def build_runner(config: Config, skip_bad_images: bool = False) -> Runner:
    """Build the runner that the config names, or else mmengine's own, with hooks of this package.

    They are `NormCheckHook` and `FiniteWeightsHook`. Its data loaders name the file that they
    cannot read, or on which a step fails. The config that it writes is unchanged.

    Args:
        config: of the run.
        skip_bad_images: whether a training skips such images.

    Raises:
        UsageError: a part does not take an option, or its type is not registered.
    """
    with building(f'what {config.filename} describes', config):
        runner = RUNNERS.build(config) if 'runner_type' in config else Runner.from_cfg(config)
    for kind in (NormCheckHook, FiniteWeightsHook):
        if not any(isinstance(hook, kind) for hook in runner.hooks):
            runner.register_hook(kind())
    _check_loading(runner, skip_bad_images)
    return runner


def _check_loading(runner: Runner, skip: bool) -> None:
    for split in ('train', 'val', 'test'):
        loader = getattr(runner, f'_{split}_dataloader', None)
        if isinstance(loader, Mapping) and 'dataset' in loader:
            dataset = with_checked_loading(loader['dataset'], skip and split == 'train')
            dataset = with_checked_steps(dataset)
            setattr(runner, f'_{split}_dataloader', {**loader, 'dataset': dataset})
    for hook in runner.hooks:
        # MMDetection's PipelineSwitchHook.
        if hasattr(hook, 'switch_pipeline'):
            hook.switch_pipeline = with_checked_loading(hook.switch_pipeline, skip)


def dump_predictions(runner: Runner, file: str | Path) -> None:
    """Write every prediction of the test to a pickle file."""
    # MMDetection's own metric compresses masks, which would fill the memory otherwise.
    kind = 'mmdet.DumpDetResults' if runner.cfg.default_scope == 'mmdet' else 'DumpResults'
    metric = METRICS.build({'type': kind, 'out_file_path': str(file)})
    runner.test_evaluator.metrics.append(metric)
