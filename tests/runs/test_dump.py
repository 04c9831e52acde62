"""A dumped config builds the model with its new norms."""

from collections.abc import Callable
from pathlib import Path

import pytest
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope

from sn_openmmlab import SwitchNorm
from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.config import read_config
from sn_openmmlab.runs.dump import check_dump_config, dump_config

pytest.importorskip('mmseg')
NAME = 'mmseg::bisenetv1/bisenetv1_r18-d32_4xb4-160k_cityscapes-1024x1024'


def test_dump_is_built_by_the_toolbox_and_keeps_all_else(tmp_path: Path) -> None:
    config = read_config(NAME, norm=dict(type='SN', scopes=('in', 'ln')))
    file = tmp_path / 'new/dumped.py'
    table = dump_config(config, file)
    rows = [row.split() for row in table.split('\n')]
    # ResNet-18 has 20 of them; the other paths take their default.
    assert ['backbone', 'BN', '13', 'SN'] in rows
    assert sum(int(row[2]) for row in rows if row[-1:] == ['SN']) == 36
    dumped, before = Config.fromfile(file), read_config(NAME)
    changed = ('model', 'custom_imports', 'custom_hooks')
    for key in dumped.keys() - changed:
        assert dumped[key] == before[key]
    with DefaultScope.overwrite_default_scope('mmseg'):
        layers = [x for x in MODELS.build(dumped.model).modules() if isinstance(x, SwitchNorm)]
    assert {layer.scopes for layer in layers} == {('in', 'ln')}


def test_nothing_is_written_for_a_model_that_cannot_be_built(
    tmp_path: Path, write_config: Callable
) -> None:
    config = read_config(write_config("default_scope = 'mmseg'\nmodel = dict(type='Absent')\n"))
    with pytest.raises(UsageError, match='cannot be built'):
        dump_config(config, tmp_path / 'dumped.py')
    assert [file.name for file in tmp_path.iterdir()] == ['written_config.py']


def test_file_must_be_another_python_file(write_config: Callable) -> None:
    file = write_config("default_scope = 'mmseg'\nmodel = dict(type='A')\n")
    config = read_config(file)
    with pytest.raises(UsageError, match=r'--dump must name a \.py file, not a\.json'):
        check_dump_config('a.json', config)
    with pytest.raises(UsageError, match='is read and would be overwritten'):
        check_dump_config(file, config)
