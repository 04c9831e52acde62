"""Building mmengine's runner for training and testing."""

from pathlib import Path

from mmengine.config import Config
from mmengine.registry import METRICS, RUNNERS
from mmengine.runner import Runner

from sn_openmmlab.hooks.norm_check_hook import NormCheckHook
from sn_openmmlab.runs.build_errors import building


def build_runner(config: Config) -> Runner:
    """Build the runner that the config names, or else mmengine's own, with `NormCheckHook`.

    Raises:
        UsageError: a part does not take an option, or its type is not registered.
    """
    with building(f'what {config.filename} describes'):
        runner = RUNNERS.build(config) if 'runner_type' in config else Runner.from_cfg(config)
    if not any(isinstance(hook, NormCheckHook) for hook in runner.hooks):
        runner.register_hook(NormCheckHook())
    return runner


def dump_predictions(runner: Runner, file: str | Path) -> None:
    """Write every prediction of the test to a pickle file."""
    # MMDetection's own metric compresses masks, which would fill the memory otherwise.
    kind = 'mmdet.DumpDetResults' if runner.cfg.default_scope == 'mmdet' else 'DumpResults'
    metric = METRICS.build({'type': kind, 'out_file_path': str(file)})
    runner.test_evaluator.metrics.append(metric)
