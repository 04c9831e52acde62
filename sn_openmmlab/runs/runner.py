"""Building mmengine's runner for training and testing."""

from collections.abc import Mapping
from functools import wraps
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.registry import METRICS, RUNNERS
from mmengine.runner import Runner

from sn_openmmlab.checkpoints.files.training_state import weights_alone
from sn_openmmlab.errors import UsageError
from sn_openmmlab.hooks.atomic_checkpoint_hook import AtomicCheckpointHook
from sn_openmmlab.hooks.checkpoint_paths_hook import CheckpointPathsHook
from sn_openmmlab.hooks.exact_resume_hook import ExactResumeHook
from sn_openmmlab.hooks.finite_weights_hook import FiniteWeightsHook
from sn_openmmlab.hooks.norm_check_hook import NormCheckHook
from sn_openmmlab.hooks.preemption_hook import PreemptionHook
from sn_openmmlab.runs.data.checked_loading import with_checked_loading
from sn_openmmlab.runs.data.checked_step import with_checked_steps
from sn_openmmlab.runs.errors.sentences import building

_HOOKS = (
    NormCheckHook,
    CheckpointPathsHook,
    AtomicCheckpointHook,
    ExactResumeHook,
    FiniteWeightsHook,
)


def build_runner(
    config: Config, skip_bad_images: bool = False, save_on_signal: bool = False
) -> Runner:
    """Build the runner that the config names, or else mmengine's own, with hooks of ours.

    `NormCheckHook` reports the norms, `CheckpointPathsHook` lets no other files be removed,
    `AtomicCheckpointHook` keeps checkpoints whole, `ExactResumeHook` lets a training be resumed
    exactly, and `FiniteWeightsHook` ends one whose loss is no number. The runner says why it cannot
    resume a file, and its data loaders name the file that they cannot read, or on which a step
    fails. The config that the runner writes is unchanged.

    Args:
        config: of the run.
        skip_bad_images: whether a training skips such images.
        save_on_signal: whether a training has a `PreemptionHook`.

    Raises:
        UsageError: a part does not take an option, or its type is not registered.
    """
    with building(f'what {config.filename} describes', config):
        runner = RUNNERS.build(config) if 'runner_type' in config else Runner.from_cfg(config)
    for kind in (*_HOOKS, *([PreemptionHook] * save_on_signal)):
        if not any(isinstance(hook, kind) for hook in runner.hooks):
            runner.register_hook(kind())
    _explain_resume(runner)
    _check_loading(runner, skip_bad_images)
    return runner


def _explain_resume(runner: Runner) -> None:
    """Let the runner say in one sentence why a checkpoint cannot be resumed."""
    resume = runner.resume

    @wraps(resume)
    def resume_or_explain(filename: str, *args: Any, **kwargs: Any) -> None:
        try:
            resume(filename, *args, **kwargs)
        except UsageError:
            raise
        except Exception as error:  # The states of optimizers and schedules have their own.
            reason = str(error).strip().split('\n')[0]
            raise UsageError(
                f'{filename} cannot be resumed ({type(error).__name__}: {reason:.200}): its '
                'training had another optimizer or other schedules, or is damaged. To start from '
                f'the weights, give {weights_alone(filename)}.'
            ) from error

    runner.resume = resume_or_explain


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
