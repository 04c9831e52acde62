"""What the options of the command lines change in a config."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import torch
from mmengine.config import Config

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs import options

Write = Callable[[str], Path]
# A checkpoint of a training, without weights.
TRAINING = dict(
    meta=dict(epoch=2, iter=8),
    message_hub=dict(log_scalars={}, runtime_info={}, resumed_keys={}),
    state_dict={},
    optimizer=dict(state={}, param_groups=[]),
)


def test_work_dir_is_the_command_lines_then_the_configs_then_the_files_name(
    write_config: Write,
) -> None:
    config = Config.fromfile(write_config('model = dict()'))
    options.set_work_dir(config, None)
    assert config.work_dir == str(Path('work_dirs/written_config'))
    config.work_dir = 'of_config'
    options.set_work_dir(config, None)
    assert config.work_dir == 'of_config'
    options.set_work_dir(config, Path('of_line'))
    assert config.work_dir == 'of_line'


def test_work_dir_that_is_a_file_is_refused(tmp_path: Path) -> None:
    config = Config(dict(work_dir=str(tmp_path / 'file')))
    options.set_work_dir(config, None)
    options.set_work_dir(config, tmp_path)
    (tmp_path / 'file').touch()
    with pytest.raises(UsageError, match=f'the work folder {tmp_path / "file"} is a file'):
        options.set_work_dir(config, tmp_path / 'file')
    with pytest.raises(UsageError, match=f'cannot be made, since {tmp_path / "file"} is a file'):
        options.set_work_dir(config, tmp_path / 'file/inner')
    (tmp_path / 'link').symlink_to('nothing')
    with pytest.raises(UsageError, match='name another --work-dir'):
        options.set_work_dir(config, tmp_path / 'link')
    # Nothing is made.
    options.set_work_dir(config, tmp_path / 'new/folder')
    assert not (tmp_path / 'new').exists()


def test_work_dir_that_may_not_be_changed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may change everything.
    monkeypatch.setattr('os.access', lambda place, mode: Path(place) != tmp_path)
    with pytest.raises(UsageError, match=f'cannot be written to, since {tmp_path} may not be'):
        options.set_work_dir(Config({}), tmp_path / 'new')


def test_one_process_needs_no_group() -> None:
    config = Config({})
    options.use_launcher(config, 'none')
    assert config.launcher == 'none'
    assert 'model_wrapper_cfg' not in config
    assert not torch.distributed.is_initialized()


@pytest.mark.parametrize('launcher', ['slurm', 'mpi'])
def test_launcher_that_needs_a_gpu_is_refused(
    launcher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: False)
    with pytest.raises(UsageError, match=f'only --launcher pytorch can be used, not {launcher}'):
        options.use_launcher(Config({}), launcher)


@pytest.mark.parametrize(
    ('name', 'kind'),
    [('model_wrapper_cfg', 'MMFullyShardedDataParallel'), ('strategy', 'FSDPStrategy')],
)
def test_sharding_is_refused(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('RANK', '0')
    config = Config({name: dict(type=kind)})
    with pytest.raises(UsageError, match=f'asks for {kind}, .* remove {name} to train with Dis'):
        options.use_launcher(config, 'pytorch')
    options.use_launcher(config, 'none')


def test_group_without_cuda_keeps_the_settings_of_the_config(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[dict] = []
    monkeypatch.setenv('RANK', '0')
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: False)
    monkeypatch.setattr(
        torch.distributed, 'init_process_group', lambda kind, **given: begun.append(given)
    )
    wrapper = dict(broadcast_buffers=True, device_ids=[0])
    env = dict(dist_cfg=dict(backend='nccl', timeout=90))
    config = Config(dict(model_wrapper_cfg=wrapper, env_cfg=env, find_unused_parameters=True))
    options.use_launcher(config, 'pytorch')
    assert begun == [dict(timeout=timedelta(seconds=90))]
    assert config.model_wrapper_cfg == dict(
        type='MMDistributedDataParallel',
        broadcast_buffers=True,
        find_unused_parameters=True,
        device_ids=None,
    )


@pytest.mark.parametrize(('ending', 'code'), [('pass', 0), ('raise UsageError("bad")', 2)])
def test_group_is_left_before_the_interpreter_ends(
    ending: str, code: int, run_tool: Callable
) -> None:
    rank = dict(RANK='0', WORLD_SIZE='1', MASTER_ADDR='127.0.0.1', MASTER_PORT='0')
    script = f"""
import atexit
import torch
from mmengine.config import Config
from sn_openmmlab.errors import UsageError, exit_with_sentence
from sn_openmmlab.runs import options

torch.cuda.is_available = lambda: False
# The functions of atexit run in reverse order, so this one runs after those of the package.
atexit.register(lambda: print('in a group:', torch.distributed.is_initialized()))

def main():
    options.use_launcher(Config({{}}), 'pytorch')
    print('in a group:', torch.distributed.is_initialized())
    {ending}

exit_with_sentence(main)
"""
    done = run_tool('-c', script, code=code, env=rank)
    assert done.stdout.splitlines() == ['in a group: True', 'in a group: False']


def test_launcher_without_torchrun_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv('RANK', raising=False)
    with pytest.raises(UsageError, match='torchrun --nproc_per_node=N'):
        options.use_launcher(Config({}), 'pytorch')


@pytest.mark.parametrize(
    ('wish', 'resume', 'load_from'),
    [(None, False, 'weights.pth'), ('epoch_3.pth', True, 'epoch_3.pth')],
)
def test_resume(wish: str | None, resume: bool, load_from: str | None) -> None:
    config = Config(dict(resume=False, load_from='weights.pth', work_dir='absent'))
    options.set_resume(config, wish)
    assert (config.resume, config.load_from) == (resume, load_from)


@pytest.mark.parametrize('by_config', [True, False], ids=['config', 'command line'])
@pytest.mark.parametrize('moved', [True, False], ids=['moved', 'in place'])
def test_resume_finds_the_newest_in_the_work_folder(
    by_config: bool, moved: bool, tmp_path: Path
) -> None:
    work_dir = tmp_path / 'work'
    work_dir.mkdir()
    torch.save(TRAINING, work_dir / 'epoch_2.pth')
    written_in = tmp_path / 'before' if moved else work_dir
    (work_dir / 'last_checkpoint').write_text(f'{written_in}/epoch_2.pth')
    config = Config(dict(resume=by_config, load_from=None, work_dir=str(work_dir)))
    options.set_resume(config, None if by_config else 'auto')
    assert (config.resume, config.load_from) == (True, str(work_dir / 'epoch_2.pth'))


def test_resume_finds_the_newest_where_the_hook_writes(tmp_path: Path) -> None:
    (tmp_path / 'out/run').mkdir(parents=True)
    torch.save(TRAINING, tmp_path / 'out/run/epoch_2.pth')
    hooks = dict(checkpoint=dict(type='CheckpointHook', out_dir=str(tmp_path / 'out')))
    config = Config(dict(work_dir=str(tmp_path / 'work/run'), default_hooks=hooks))
    options.set_resume(config, 'auto')
    assert config.load_from == str(tmp_path / 'out/run/epoch_2.pth')


@pytest.mark.parametrize('load_from', [None, 'weights.pth'])
def test_resume_with_nothing_to_continue_starts_as_the_config_says_and_says_so(
    load_from: str | None, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    config = Config(dict(load_from=load_from, work_dir=str(tmp_path)))
    options.set_resume(config, 'auto')
    assert (config.resume, config.load_from) == (False, load_from)
    start = f', from {load_from}' if load_from else ''
    said = f'{tmp_path} has no checkpoint: the training starts anew{start}.\n'
    assert said in capsys.readouterr().out


def test_newest_checkpoint_that_is_gone_is_not_continued(tmp_path: Path) -> None:
    (tmp_path / 'last_checkpoint').write_text('gone/epoch_2.pth')
    config = Config(dict(work_dir=str(tmp_path)))
    with pytest.raises(UsageError, match='has no whole checkpoint to go on from'):
        options.set_resume(config, 'auto')


def test_amp_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, 'get_device', lambda: 'cuda')
    optimizer = dict(type='SGD', lr=0.1)
    config = Config(dict(optim_wrapper=dict(type='OptimWrapper', optimizer=optimizer)))
    options.use_amp(config)
    expected = dict(type='AmpOptimWrapper', loss_scale='dynamic', optimizer=optimizer)
    assert config.optim_wrapper == expected


def test_amp_without_a_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, 'get_device', lambda: 'cpu')
    config = Config(dict(optim_wrapper=dict(type='OptimWrapper')))
    with pytest.raises(UsageError, match='--amp needs a GPU'):
        options.use_amp(config)


def test_scaled_lr() -> None:
    config = Config(dict(auto_scale_lr=dict(base_batch_size=16, enable=False)))
    options.use_scaled_lr(config)
    assert config.auto_scale_lr == dict(base_batch_size=16, enable=True)


@pytest.mark.parametrize(
    'settings', [{}, dict(auto_scale_lr=None), dict(auto_scale_lr=dict(enable=False))]
)
def test_scaled_lr_without_its_batch_is_refused(settings: dict) -> None:
    with pytest.raises(UsageError, match=r'auto-scale-lr needs .*base_batch_size'):
        options.use_scaled_lr(Config(settings))


def test_test_time_augmentation_wraps_the_model() -> None:
    config = Config(
        dict(
            model=dict(type='FasterRCNN'),
            tta_model=dict(type='DetTTAModel', tta_cfg=dict(max_per_img=100)),
            tta_pipeline=[dict(type='LoadImageFromFile'), dict(type='TestTimeAug')],
            test_dataloader=dict(dataset=dict(pipeline=[dict(type='LoadImageFromFile')])),
        )
    )
    options.use_test_time_augmentation(config)
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
        options.use_test_time_augmentation(Config(dict(model=dict(), **present)))


def drawing(scope: str) -> Config:
    hooks = dict(visualization=dict(type='VisualizationHook'))
    return Config(dict(default_scope=scope, default_hooks=hooks, visualizer=dict(type='V')))


def test_drawing_goes_where_each_toolbox_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = str(tmp_path / 'drawn')
    detection = drawing('mmdet')
    options.draw_predictions(detection, 'drawn')
    hook = detection.default_hooks.visualization
    assert (hook.draw, hook.interval, hook.test_out_dir) == (True, 1, folder)
    segmentation = drawing('mmseg')
    options.draw_predictions(segmentation, 'drawn')
    hook = segmentation.default_hooks.visualization
    assert (hook.draw, hook.interval) == (True, 1)
    assert segmentation.visualizer.save_dir == folder
    classification = drawing('mmpretrain')
    options.draw_predictions(classification, 'drawn')
    hook = classification.default_hooks.visualization
    assert (hook.enable, hook.interval, hook.out_dir) == (True, 1, folder)


@pytest.mark.parametrize('settings', [{}, dict(default_hooks=dict(visualization=None))])
def test_drawing_without_a_hook_is_refused(settings: dict) -> None:
    with pytest.raises(UsageError, match='--show-dir needs a visualization hook'):
        options.draw_predictions(Config(dict(default_scope='mmdet', **settings)), 'drawn')


def test_dump_is_a_pickle() -> None:
    for name in ('out.pkl', 'folder/out.pickle'):
        options.check_dump(name)
    for name in ('out.json', 'out', 'pkl', 'out.pkl.txt'):
        with pytest.raises(UsageError, match=f'must name a .pkl or .pickle file, not {name}'):
            options.check_dump(name)
