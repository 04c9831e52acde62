"""The runner is the one that the config names, with our hooks, and writes predictions."""

import copy
from pathlib import Path

import pytest
import torch
from mmdet.evaluation import DumpDetResults
from mmengine.config import Config
from mmengine.evaluator import DumpResults, Evaluator
from mmengine.hooks import Hook
from mmengine.registry import HOOKS, RUNNERS
from mmengine.runner import Runner

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs import runner as runners
from tests.small_run import register, small_config


class FakeRunner:
    """As much of a runner as the dump of predictions touches."""

    def __init__(self) -> None:
        self.test_evaluator = Evaluator([])


@pytest.mark.parametrize(('scope', 'kind'), [('mmdet', DumpDetResults), ('mmseg', DumpResults)])
def test_dump_is_added_to_the_metrics(scope: str, kind: type, tmp_path: Path) -> None:
    runner = FakeRunner()
    runner.cfg = Config({'default_scope': scope})
    runners.dump_predictions(runner, tmp_path / 'out.pkl')
    (metric,) = runner.test_evaluator.metrics
    assert type(metric) is kind
    assert metric.out_file_path == str(tmp_path / 'out.pkl')


def test_runner_is_mmengines_own_or_the_one_that_the_config_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @RUNNERS.register_module(force=True)
    class RunnerOfTests:
        def __init__(self, name: str, cfg: dict) -> None:
            self.name, self.cfg = name, cfg
            self.hooks = [HOOKS.build(hook) for hook in cfg.get('custom_hooks', [])]

        @classmethod
        def from_cfg(cls, config: Config) -> 'RunnerOfTests':
            return cls('ours', config)

        def register_hook(self, hook: Hook) -> None:
            self.hooks.append(hook)

        def resume(self, filename: str) -> None:
            pass

    monkeypatch.setattr(Runner, 'from_cfg', lambda config: RunnerOfTests('mmengine', config))
    try:
        for name, config in (
            ('mmengine', {}),
            ('mmengine', dict(custom_hooks=[dict(type='NormCheckHook')])),
            ('mmengine', dict(custom_hooks=[dict(type='ExactResumeHook')])),
            ('ours', dict(runner_type='RunnerOfTests')),
        ):
            built = runners.build_runner(Config(dict(a=1, **config)))
            assert (built.name, built.cfg.a) == (name, 1)
            names = [
                'AtomicCheckpoint',
                'CheckpointPaths',
                'ExactResume',
                'FiniteWeights',
                'NormCheck',
            ]
            ours = sorted(f'{name}Hook' for name in names)
            assert sorted(type(hook).__name__ for hook in built.hooks) == ours
            built = runners.build_runner(Config(dict(a=1, **config)), save_on_signal=True)
            assert sorted(type(hook).__name__ for hook in built.hooks) == [*ours, 'PreemptionHook']
    finally:
        RUNNERS.module_dict.pop('RunnerOfTests')


@pytest.mark.parametrize('skip', [False, True])
def test_loaders_name_bad_images_and_only_a_training_skips_them(
    skip: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(monkeypatch)
    load = dict(type='LoadImageFromFile')
    loader = dict(dataset=dict(type='CocoDataset', pipeline=[load]), batch_size=2)
    config = small_config(tmp_path, val_dataloader=loader)
    config.train_dataloader = dict(loader)
    switch = dict(type='mmdet.PipelineSwitchHook', switch_epoch=1, switch_pipeline=[load])
    config.custom_hooks = [switch]
    runner = runners.build_runner(config, skip_bad_images=skip)
    checked = [dict(type='CheckedLoading', step=load, skip=skip)]
    assert runner._train_dataloader['dataset']['pipeline'] == checked
    assert runner._train_dataloader['batch_size'] == 2
    assert runner._val_dataloader['dataset']['pipeline'] == [{**checked[0], 'skip': False}]
    (hook,) = [hook for hook in runner.hooks if hasattr(hook, 'switch_pipeline')]
    assert hook.switch_pipeline == checked
    # The config of the run is the one for the toolbox.
    assert runner.cfg.train_dataloader.dataset.pipeline == [load]


def test_what_cannot_be_resumed_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MMEngine and torch end in errors of their own."""
    register(monkeypatch)
    runners.build_runner(small_config(tmp_path)).train()
    file = tmp_path / 'epoch_2.pth'
    whole = torch.load(file, weights_only=False)
    changes = {
        'ValueError: loaded state dict contains a': lambda c: c['optimizer']['param_groups'][
            0
        ].update(params=[0]),
        "KeyError: 'param_groups'": lambda c: c['optimizer'].pop('param_groups'),
        'AssertionError: The loaded `state_dict`': lambda c: c['message_hub'].pop('resumed_keys'),
    }
    for said, change in changes.items():
        checkpoint = copy.deepcopy(whole)
        change(checkpoint)
        torch.save(checkpoint, file)
        options = dict(
            load_from=str(file), resume=True, train_cfg=dict(by_epoch=True, max_epochs=3)
        )
        runner = runners.build_runner(small_config(tmp_path, **options))
        with pytest.raises(
            UsageError, match=rf'epoch_2\.pth cannot be resumed \({said}.*load_from'
        ):
            runner.train()
