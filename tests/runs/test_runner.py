"""What the command lines' wishes change in a config and a runner."""

from pathlib import Path

import pytest
from mmdet.evaluation import DumpDetResults
from mmengine.config import Config
from mmengine.evaluator import DumpResults, Evaluator
from mmengine.hooks import Hook
from mmengine.registry import RUNNERS
from mmengine.runner import Runner

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs import runner as runners
from sn_openmmlab.runs.norms import NormsHook


@pytest.mark.parametrize(
    ('wish', 'resume', 'load_from'),
    [(None, False, 'weights.pth'), ('epoch_3.pth', True, 'epoch_3.pth')],
)
def test_resume(wish: str | None, resume: bool, load_from: str | None) -> None:
    config = Config(dict(resume=False, load_from='weights.pth', work_dir='absent'))
    runners.set_resume(config, wish)
    assert (config.resume, config.load_from) == (resume, load_from)


@pytest.mark.parametrize('by_config', [True, False], ids=['config', 'command line'])
@pytest.mark.parametrize('moved', [True, False], ids=['moved', 'in place'])
def test_resume_finds_the_newest_in_the_work_folder(
    by_config: bool, moved: bool, tmp_path: Path
) -> None:
    work_dir = tmp_path / 'work'
    work_dir.mkdir()
    (work_dir / 'epoch_2.pth').touch()
    written_in = tmp_path / 'before' if moved else work_dir
    (work_dir / 'last_checkpoint').write_text(f'{written_in}/epoch_2.pth')
    config = Config(dict(resume=by_config, load_from=None, work_dir=str(work_dir)))
    runners.set_resume(config, None if by_config else 'auto')
    assert (config.resume, config.load_from) == (True, str(work_dir / 'epoch_2.pth'))


@pytest.mark.parametrize('load_from', [None, 'weights.pth'])
def test_resume_with_nothing_to_continue_starts_as_the_config_says_and_says_so(
    load_from: str | None, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    config = Config(dict(load_from=load_from, work_dir=str(tmp_path)))
    runners.set_resume(config, 'auto')
    assert (config.resume, config.load_from) == (False, load_from)
    start = f', from {load_from}' if load_from else ''
    said = f'{tmp_path} holds no checkpoint: the training starts anew{start}.\n'
    assert said in capsys.readouterr().out


def test_newest_checkpoint_that_is_gone_is_not_continued(tmp_path: Path) -> None:
    (tmp_path / 'last_checkpoint').write_text('gone/epoch_2.pth')
    config = Config(dict(work_dir=str(tmp_path)))
    with pytest.raises(UsageError, match=r'names gone/epoch_2\.pth, which does not exist: name'):
        runners.set_resume(config, 'auto')


def test_amp_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners, 'get_device', lambda: 'cuda')
    optimizer = dict(type='SGD', lr=0.1)
    config = Config(dict(optim_wrapper=dict(type='OptimWrapper', optimizer=optimizer)))
    runners.use_amp(config)
    expected = dict(type='AmpOptimWrapper', loss_scale='dynamic', optimizer=optimizer)
    assert config.optim_wrapper == expected


def test_amp_without_a_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners, 'get_device', lambda: 'cpu')
    config = Config(dict(optim_wrapper=dict(type='OptimWrapper')))
    with pytest.raises(UsageError, match='--amp needs a GPU'):
        runners.use_amp(config)


def test_scaled_lr() -> None:
    config = Config(dict(auto_scale_lr=dict(base_batch_size=16, enable=False)))
    runners.use_scaled_lr(config)
    assert config.auto_scale_lr == dict(base_batch_size=16, enable=True)


@pytest.mark.parametrize(
    'settings', [{}, dict(auto_scale_lr=None), dict(auto_scale_lr=dict(enable=False))]
)
def test_scaled_lr_without_its_batch_is_refused(settings: dict) -> None:
    with pytest.raises(UsageError, match=r'auto-scale-lr needs .*base_batch_size'):
        runners.use_scaled_lr(Config(settings))


def test_test_time_augmentation_wraps_the_model() -> None:
    config = Config(
        dict(
            model=dict(type='FasterRCNN'),
            tta_model=dict(type='DetTTAModel', tta_cfg=dict(max_per_img=100)),
            tta_pipeline=[dict(type='LoadImageFromFile'), dict(type='TestTimeAug')],
            test_dataloader=dict(dataset=dict(pipeline=[dict(type='LoadImageFromFile')])),
        )
    )
    runners.use_test_time_augmentation(config)
    assert config.model.type == 'DetTTAModel'
    assert config.model.tta_cfg == dict(max_per_img=100)
    assert config.model.module == dict(type='FasterRCNN')
    assert [step.type for step in config.test_dataloader.dataset.pipeline] == [
        'LoadImageFromFile',
        'TestTimeAug',
    ]


@pytest.mark.parametrize(
    ('present', 'named'),
    [
        ({}, 'tta_model and tta_pipeline'),
        ({'tta_model': dict()}, 'needs tta_pipeline in'),
        ({'tta_pipeline': []}, 'needs tta_model in'),
    ],
)
def test_test_time_augmentation_that_lacks_something_is_refused(present: dict, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        runners.use_test_time_augmentation(Config(dict(model=dict(), **present)))


def drawing(scope: str) -> Config:
    hooks = dict(visualization=dict(type='VisualizationHook'))
    return Config(dict(default_scope=scope, default_hooks=hooks, visualizer=dict(type='V')))


def test_drawing_goes_where_each_toolbox_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = str(tmp_path / 'drawn')
    detection = drawing('mmdet')
    runners.draw_predictions(detection, 'drawn')
    hook = detection.default_hooks.visualization
    assert (hook.draw, hook.interval, hook.test_out_dir) == (True, 1, folder)
    segmentation = drawing('mmseg')
    runners.draw_predictions(segmentation, 'drawn')
    hook = segmentation.default_hooks.visualization
    assert (hook.draw, hook.interval) == (True, 1)
    assert segmentation.visualizer.save_dir == folder
    classification = drawing('mmpretrain')
    runners.draw_predictions(classification, 'drawn')
    hook = classification.default_hooks.visualization
    assert (hook.enable, hook.interval, hook.out_dir) == (True, 1, folder)


@pytest.mark.parametrize('settings', [{}, dict(default_hooks=dict(visualization=None))])
def test_drawing_without_a_hook_is_refused(settings: dict) -> None:
    with pytest.raises(UsageError, match='--show-dir needs a visualization hook'):
        runners.draw_predictions(Config(dict(default_scope='mmdet', **settings)), 'drawn')


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


def test_dump_is_a_pickle() -> None:
    for name in ('out.pkl', 'folder/out.pickle'):
        runners.check_dump(name)
    for name in ('out.json', 'out', 'pkl', 'out.pkl.txt'):
        with pytest.raises(UsageError, match=f'must name a .pkl or .pickle file, not {name}'):
            runners.check_dump(name)


def test_runner_is_mmengines_own_or_the_one_that_the_config_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @RUNNERS.register_module(force=True)
    class RunnerOfTests:
        def __init__(self, name: str, cfg: dict) -> None:
            self.name, self.cfg, self.hooks = name, cfg, []

        @classmethod
        def from_cfg(cls, config: Config) -> 'RunnerOfTests':
            return cls('ours', config)

        def register_hook(self, hook: Hook) -> None:
            self.hooks.append(hook)

    monkeypatch.setattr(Runner, 'from_cfg', lambda config: RunnerOfTests('mmengine', config))
    try:
        for name, config in (('mmengine', {}), ('ours', dict(runner_type='RunnerOfTests'))):
            built = runners.build_runner(Config(dict(a=1, **config)))
            assert (built.name, built.cfg.a) == (name, 1)
            assert [type(hook) for hook in built.hooks] == [NormsHook]
    finally:
        RUNNERS.module_dict.pop('RunnerOfTests')
