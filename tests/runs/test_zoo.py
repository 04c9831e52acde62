"""Configs are found in the zoos of the installed toolboxes, whatever their distribution is."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from mmengine.config import Config

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs import zoo
from sn_openmmlab.runs.config import read_config
from sn_openmmlab.runs.zoo import find_config

NAMES = {
    'mmdet': ('retinanet/retinanet_r50_fpn_1x_coco', 'RetinaNet'),
    'mmseg': ('fcn/fcn_r50-d8_4xb2-40k_cityscapes-512x1024', 'EncoderDecoder'),
    'mmpretrain': ('resnet/resnet18_8xb32_in1k', 'ImageClassifier'),
}


@pytest.mark.parametrize('suffix', ['', '.py'])
@pytest.mark.parametrize('toolbox', NAMES)
def test_config_of_a_zoo_is_read_by_its_name(toolbox: str, suffix: str) -> None:
    pytest.importorskip(toolbox)
    name, model = NAMES[toolbox]
    config = read_config(f'{toolbox}::{name}{suffix}', norm='SN')
    assert (config.model.type, config.model.of) == ('WithNorm', model)
    assert Path(config.filename).stem == Path(name).name


def test_unknown_config_names_a_similar_one() -> None:
    pytest.importorskip('mmdet')
    with pytest.raises(UsageError, match='do you mean mmdet::retinanet/retinanet_r50_fpn_1x_coco'):
        find_config('mmdet::retina/retinanet_r50_fpn_1x_coc.py')


@pytest.mark.parametrize('rest', ['', '..', '/etc/passwd', 'x' * 99])
def test_unlike_name_shows_where_the_configs_are(rest: str) -> None:
    pytest.importorskip('mmdet')
    with pytest.raises(UsageError, match=r'has no config .*: they are in .*configs\.$'):
        find_config(f'mmdet::{rest}')


def test_unknown_toolbox_is_refused() -> None:
    with pytest.raises(UsageError, match='mmpose:: names no toolbox: write one of mmdet, mmseg,'):
        find_config('mmpose::a.py')


def test_missing_toolbox_and_missing_configs_are_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(zoo, 'find_spec', lambda _: None)
    with pytest.raises(UsageError, match=r'^mmseg is not installed here\.$'):
        find_config('mmseg::a.py')
    (tmp_path / 'mmseg').mkdir()
    spec = SimpleNamespace(origin=str(tmp_path / 'mmseg/__init__.py'))
    monkeypatch.setattr(zoo, 'find_spec', lambda _: spec)
    with pytest.raises(UsageError, match='mmseg was installed without its configs'):
        find_config('mmseg::a.py')
    # As pip leaves them in an editable installation.
    (tmp_path / 'configs/a').mkdir(parents=True)
    (tmp_path / 'configs/a/b.py').write_text('c = 1\n')
    assert Config.fromfile(find_config('mmseg::a/b')).c == 1
