"""Configs are read and checked; each mistake is one sentence."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.config import (
    read_config,
)

Write = Callable[[str], Path]


def test_config_is_read_with_its_options(write_config: Write) -> None:
    file = write_config("default_scope = 'mmdet'\nmodel = dict(a=1, b=[dict(c=2), dict(c=3)])\n")
    config = read_config(file, {'model.a': 5, 'model.b.1.c': 6, 'new.key': 'x'})
    assert config.model == dict(a=5, b=[dict(c=2), dict(c=6)])
    assert config.new.key == 'x'
    assert config.filename == str(file)


def test_norms_are_replaced_after_the_options(write_config: Write) -> None:
    file = write_config("default_scope = 'mmdet'\nmodel = dict(type='A', a=1)\n")
    config = read_config(file, {'model.a': 5}, 'SyncSN', ['neck'])
    norm = dict(norm_cfg=dict(type='SyncSN'), norm_parts=['neck'])
    assert config.model == dict(type='WithNorm', of='A', a=5, **norm)


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
        ("custom_imports = dict(imports=['absent_package'])\n", "named 'absent_package'\\)$"),
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


def test_wrong_norm_cfg_is_told_on_reading(write_config: Write) -> None:
    file = write_config("default_scope = 'mmdet'\nmodel = dict(neck=dict(norm_cfg='SN'))\n")
    with pytest.raises(UsageError, match=r"write model\.neck\.norm_cfg=dict\(type='SN'\)"):
        read_config(file)


def test_an_error_in_a_module_of_the_user_keeps_its_traceback(
    write_config: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / 'own_module.py').write_text('absent_name')
    with pytest.raises(NameError, match='absent_name'):
        read_config(write_config("custom_imports = dict(imports=['own_module'])\n"))


def test_what_a_module_of_the_user_lacks_is_named(
    write_config: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / 'lacking_module.py').write_text('import absent_library')
    with pytest.raises(UsageError, match=r'No module named .absent_library'):
        read_config(write_config("custom_imports = dict(imports=['lacking_module'])\n"))
