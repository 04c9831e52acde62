"""Configs are read, checked and fitted to the machine; each fault is one sentence."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from mmengine.config import Config

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.config import (
    check_checkpoint,
    check_load_from,
    check_pretrained,
    read_config,
    set_work_dir,
    use_launcher,
)

Write = Callable[[str], Path]


def test_config_is_read_with_its_options(write_config: Write) -> None:
    file = write_config("default_scope = 'mmdet'\nmodel = dict(a=1, b=[dict(c=2), dict(c=3)])\n")
    config = read_config(file, {'model.a': 5, 'model.b.1.c': 6, 'new.key': 'x'})
    assert config.model == dict(a=5, b=[dict(c=2), dict(c=6)])
    assert config.new.key == 'x'
    assert config.filename == str(file)


def test_config_is_converted_after_its_options(write_config: Write) -> None:
    file = write_config("default_scope = 'mmdet'\nmodel = dict(type='A', a=1)\n")
    config = read_config(file, {'model.a': 5, 'norm_cfg.type': 'SyncSN'}, convert=True)
    assert config.model == dict(type='WithSN', of='A', norm_cfg=dict(type='SyncSN'), a=5)


@pytest.mark.parametrize(
    ('text', 'name'),
    [
        ('{"default_scope": "mmdet", "model": {"a": 1}}', 'config.json'),
        ('default_scope: mmdet\nmodel: {a: 1}\n', 'config.yaml'),
    ],
)
def test_other_formats_are_read(text: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert read_config(tmp_path / name).model.a == 1


def test_missing_config_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / 'absent.py', tmp_path):
        with pytest.raises(UsageError, match=f'there is no config file {path}'):
            read_config(path)


@pytest.mark.parametrize(
    ('text', 'reason'),
    [
        ('model = dict(', 'line 1'),
        ('model = dict(a=absent)', 'absent'),
        ('raise ValueError', 'ValueError'),
        ('raise ValueError("first\\nsecond")', 'first$'),
        ("_base_ = './absent_base.py'", 'absent_base.py'),
        ("_base_ = 'mmdet::absent/absent.py'", 'absent'),
        ("custom_imports = dict(imports=['absent_package'])\n", 'absent_package.*}$'),
        ("_base_ = 5\ndefault_scope = 'mmdet'", ''),
    ],
    ids=['syntax', 'name', 'bare', 'two_lines', 'base', 'toolbox_base', 'import', 'base_type'],
)
def test_unreadable_config_is_one_sentence(text: str, reason: str, write_config: Write) -> None:
    file = write_config(text)
    with pytest.raises(UsageError, match=reason) as caught:
        read_config(file)
    message = str(caught.value)
    assert message.startswith(f'{file} cannot be read as a config: ')
    assert '\n' not in message
    assert message.removeprefix(f'{file} cannot be read as a config: ')


def test_base_of_a_toolbox_under_another_name_is_one_sentence(
    write_config: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with onedl-mmsegmentation, which is not there by the name that mmengine looks for."""
    pytest.importorskip('mmseg')
    monkeypatch.setattr('mmengine.config.config.is_installed', lambda package: False)
    monkeypatch.setattr('subprocess.check_call', lambda *args, **_: pytest.fail(f'runs {args}'))
    file = write_config("_base_ = 'mmseg::_base_/models/bisenetv2.py'\ndefault_scope = 'mmseg'\n")
    with pytest.raises(
        UsageError, match=r'write the path of its configs, .*/mmseg/.*/…$'
    ) as caught:
        read_config(file)
    message = str(caught.value)
    assert 'in a distribution named mmsegmentation, but the mmseg here has another' in message
    folder = Path(message.removesuffix('/…').rpartition(' ')[2])
    base = folder / '_base_/models/bisenetv2.py'
    file = write_config(f"_base_ = '{base}'\ndefault_scope = 'mmseg'\n")
    assert read_config(file).model.backbone.type == 'BiSeNetV2'


def test_base_of_a_toolbox_that_is_not_there_is_one_sentence(
    write_config: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('mmengine.config.config.is_installed', lambda package: False)
    monkeypatch.setitem(sys.modules, 'mmseg', None)
    with pytest.raises(UsageError, match='mmsegmentation is not installed, please install'):
        read_config(write_config("_base_ = 'mmseg::_base_/models/bisenetv2.py'"))


def test_file_of_another_kind_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / 'config.txt'
    file.write_text("default_scope = 'mmdet'")
    with pytest.raises(UsageError, match=f'^{file} cannot be read as a config: '):
        read_config(file)


def test_option_that_does_not_fit_is_one_sentence(write_config: Write) -> None:
    file = write_config("default_scope = 'mmdet'\nmodel = dict(a=[1, 2])\n")
    with pytest.raises(UsageError, match=r'cannot be read as a config: .') as caught:
        read_config(file, {'model.a.7': 1})
    assert '\n' not in str(caught.value)


@pytest.mark.parametrize('scope', ["'mmengine'", "'MMDet'", 'None', "['mmdet']"])
def test_foreign_scope_is_refused(scope: str, write_config: Write) -> None:
    with pytest.raises(UsageError, match='must name its toolbox there: one of mmdet, mmseg, mm'):
        read_config(write_config(f'default_scope = {scope}'))


def test_config_without_scope_is_refused(write_config: Write) -> None:
    with pytest.raises(UsageError, match='default_scope = None'):
        read_config(write_config('model = dict()'))


def test_config_without_model_is_refused(write_config: Write) -> None:
    with pytest.raises(UsageError, match='has no model: it is not the config of a whole run'):
        read_config(write_config("default_scope = 'mmdet'"))


@pytest.mark.parametrize('toolbox', ['mmdet', 'mmseg', 'mmpretrain'])
def test_missing_toolbox_is_named(
    toolbox: str, write_config: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, toolbox, None)
    file = write_config(f"default_scope = '{toolbox}'\nmodel = dict()\n")
    with pytest.raises(UsageError, match=f'a config of {toolbox}, which is not installed here'):
        read_config(file)


def test_work_dir_is_the_command_lines_then_the_configs_then_the_files_name(
    write_config: Write,
) -> None:
    config = Config.fromfile(write_config('model = dict()'))
    set_work_dir(config, None)
    assert config.work_dir == str(Path('work_dirs/written_config'))
    config.work_dir = 'of_config'
    set_work_dir(config, None)
    assert config.work_dir == 'of_config'
    set_work_dir(config, Path('of_line'))
    assert config.work_dir == 'of_line'


def test_work_dir_that_is_a_file_is_refused(tmp_path: Path) -> None:
    config = Config(dict(work_dir=str(tmp_path / 'file')))
    set_work_dir(config, None)
    set_work_dir(config, tmp_path)
    (tmp_path / 'file').touch()
    with pytest.raises(UsageError, match=f'the work folder {tmp_path / "file"} is a file'):
        set_work_dir(config, tmp_path / 'file')


def test_one_process_needs_no_group() -> None:
    config = Config({})
    use_launcher(config, 'none')
    assert config.launcher == 'none'
    assert 'model_wrapper_cfg' not in config
    assert not torch.distributed.is_initialized()


@pytest.mark.parametrize('launcher', ['slurm', 'mpi'])
def test_launcher_that_needs_a_gpu_is_refused(
    launcher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: False)
    with pytest.raises(UsageError, match=f'only --launcher pytorch can be used, not {launcher}'):
        use_launcher(Config({}), launcher)


def test_launcher_without_torchrun_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv('RANK', raising=False)
    with pytest.raises(UsageError, match='torchrun --nproc_per_node=N'):
        use_launcher(Config({}), 'pytorch')


def test_missing_checkpoint_is_named(tmp_path: Path) -> None:
    file = tmp_path / 'weights.pth'
    for path in (file, tmp_path):
        with pytest.raises(UsageError, match=f'there is no checkpoint file {path}'):
            check_checkpoint(path)
    with pytest.raises(UsageError, match='that is a folder'):
        check_checkpoint(tmp_path)
    file.touch()
    check_checkpoint(file)
    check_checkpoint('https://example.org/weights.pth')


def test_home_folder_is_understood_in_a_config_too(
    tmp_path: Path, write_config: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('HOME', str(tmp_path))
    (tmp_path / 'weights.pth').touch()
    check_checkpoint('~/weights.pth')
    check_pretrained(Config.fromfile(write_config(MODEL.format('~/weights.pth', '~/weights.pth'))))


MODEL = """
model = dict(
    backbone=dict(type='A', init_cfg=dict(type='Pretrained', checkpoint='{0}')),
    neck=dict(init_cfg=dict(type='Xavier')),
    heads=[dict(init_cfg=None), dict(init_cfg=dict(type='SNPretrained', checkpoint='{1}'))],
)
"""


@pytest.mark.parametrize(
    ('place', 'key'), [(0, 'model.backbone'), (1, 'model.heads.1')], ids=['dict', 'list']
)
def test_missing_pretrained_file_is_named_with_its_place(
    place: int, key: str, tmp_path: Path, write_config: Write
) -> None:
    files = [tmp_path / 'a.pth', tmp_path / 'b.pth']
    files[1 - place].touch()
    config = Config.fromfile(write_config(MODEL.format(*files)))
    with pytest.raises(UsageError) as caught:
        check_pretrained(config)
    message = str(caught.value)
    assert f'starts {key} from {files[place]}, which does not exist' in message
    assert str(files[1 - place]) not in message
    # What the sentence offers works.
    for option in (
        {f'{key}.init_cfg.checkpoint': str(files[1 - place])},
        {f'{key}.init_cfg': None},
    ):
        changed = Config.fromfile(config.filename)
        changed.merge_from_dict(option)
        check_pretrained(changed)


def test_list_of_initializers_is_looked_through(tmp_path: Path, write_config: Write) -> None:
    inits = "[dict(type='Kaiming'), dict(type='SNPretrained', checkpoint='absent.pth')]"
    config = Config.fromfile(write_config(f'model = dict(backbone=dict(init_cfg={inits}))'))
    key = 'model.backbone.init_cfg.1.checkpoint'
    with pytest.raises(UsageError, match=rf'name another with --cfg-options {key}=FILE'):
        check_pretrained(config)
    (tmp_path / 'a.pth').touch()
    config.merge_from_dict({key: str(tmp_path / 'a.pth')})
    check_pretrained(config)


@pytest.mark.parametrize('kind', ['Pretrained', 'SNPretrained'])
@pytest.mark.parametrize('checkpoint', ['', ", checkpoint=None, prefix='a'"], ids=['none', 'None'])
def test_pretrained_part_without_a_checkpoint_is_one_sentence(
    kind: str, checkpoint: str, write_config: Write
) -> None:
    text = f"model = dict(heads=[dict(init_cfg=dict(type='{kind}'{checkpoint}))])"
    words = (
        r'model\.heads\.0\.init_cfg has no checkpoint: name .* model\.heads\.0\.init_cfg\.checkp'
    )
    with pytest.raises(UsageError, match=words):
        check_pretrained(Config.fromfile(write_config(text)))


def test_present_and_remote_pretrained_files_are_accepted(
    tmp_path: Path, write_config: Write
) -> None:
    present = tmp_path / 'a.pth'
    present.touch()
    check_pretrained(
        Config.fromfile(write_config(MODEL.format(present, 'https://example.org/a.pth')))
    )


C4 = """
start = dict(type='Pretrained', checkpoint='{0}')
model = dict(
    backbone=dict(frozen_stages=1, init_cfg=start),
    roi_head=dict(shared_head=dict(init_cfg=start)),
)
"""


def test_all_missing_places_are_named_with_options_that_fit_them(
    tmp_path: Path, write_config: Write
) -> None:
    config = Config.fromfile(write_config(C4.format(tmp_path / 'absent.pth')))
    with pytest.raises(UsageError) as caught:
        check_pretrained(config)
    message = str(caught.value)
    assert 'model.backbone from' in message
    assert 'model.roi_head.shared_head from' in message
    offered = [word.rstrip('.,') for word in message.split() if '=None' in word or '=-1' in word]
    assert offered == [
        'model.backbone.init_cfg=None',
        'model.backbone.frozen_stages=-1',
        'model.roi_head.shared_head.init_cfg=None',
    ]
    config.merge_from_dict({key: None for key in (word.split('=')[0] for word in offered)})
    check_pretrained(config)


def test_weights_of_torchvision_need_torchvision(
    write_config: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config.fromfile(write_config(C4.format('torchvision://resnet50')))
    monkeypatch.setattr('sn_openmmlab.runs.config.find_spec', lambda name: None)
    with pytest.raises(UsageError, match=r'torchvision://resnet50, which needs torchvision'):
        check_pretrained(config)
    monkeypatch.setattr('sn_openmmlab.runs.config.find_spec', lambda name: name == 'torchvision')
    check_pretrained(config)


def test_start_from_a_folder_is_called_a_folder(tmp_path: Path, write_config: Write) -> None:
    with pytest.raises(UsageError, match=f'starts from {tmp_path}, which is a folder'):
        check_load_from(Config(dict(load_from=str(tmp_path))))
    (tmp_path / 'b.pth').touch()
    config = Config.fromfile(write_config(MODEL.format(tmp_path, tmp_path / 'b.pth')))
    with pytest.raises(UsageError, match=f'from {tmp_path}, which is a folder'):
        check_pretrained(config)


def test_norm_cfg_that_cannot_be_meant_is_told_on_reading(write_config: Write) -> None:
    file = write_config("default_scope = 'mmdet'\nmodel = dict(neck=dict(norm_cfg='SN'))\n")
    with pytest.raises(UsageError, match=r"write model\.neck\.norm_cfg=dict\(type='SN'\)"):
        read_config(file)


def test_missing_start_of_a_fine_tuning_says_what_to_do(tmp_path: Path) -> None:
    start = tmp_path / 'epoch_24.pth'
    config = Config(dict(load_from=str(start)))
    with pytest.raises(UsageError, match=r'--cfg-options load_from=FILE'):
        check_load_from(config)
    config.resume = True
    with pytest.raises(UsageError, match='there is no checkpoint file'):
        check_load_from(config)
    start.touch()
    for resume in (True, False):
        config.resume = resume
        check_load_from(config)
    check_load_from(Config(dict(load_from=None)))
