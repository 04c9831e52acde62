"""Checkpoint files that a run starts from and that are not there are told in one sentence."""

from collections.abc import Callable
from pathlib import Path

import pytest
from mmengine.config import Config

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.weights.files import (
    check_checkpoint,
    check_load_from,
    check_pretrained,
)

Write = Callable[[str], Path]


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


MODEL = """
model = dict(
    backbone=dict(type='A', init_cfg=dict(type='Pretrained', checkpoint='{0}')),
    neck=dict(init_cfg=dict(type='Xavier')),
    heads=[dict(init_cfg=None), dict(init_cfg=dict(type='SNPretrained', checkpoint='{1}'))],
)
"""


def test_home_folder_is_understood_in_a_config_too(
    tmp_path: Path, write_config: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('HOME', str(tmp_path))
    (tmp_path / 'weights.pth').touch()
    check_checkpoint('~/weights.pth')
    check_pretrained(Config.fromfile(write_config(MODEL.format('~/weights.pth', '~/weights.pth'))))


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
    monkeypatch.setattr('sn_openmmlab.runs.weights.files.find_spec', lambda name: None)
    with pytest.raises(UsageError, match=r'torchvision://resnet50, which needs torchvision'):
        check_pretrained(config)
    monkeypatch.setattr(
        'sn_openmmlab.runs.weights.files.find_spec', lambda name: name == 'torchvision'
    )
    check_pretrained(config)


def test_start_from_a_folder_is_called_a_folder(tmp_path: Path, write_config: Write) -> None:
    with pytest.raises(UsageError, match=f'starts from {tmp_path}, which is a folder'):
        check_load_from(Config(dict(load_from=str(tmp_path))))
    (tmp_path / 'b.pth').touch()
    config = Config.fromfile(write_config(MODEL.format(tmp_path, tmp_path / 'b.pth')))
    with pytest.raises(UsageError, match=f'from {tmp_path}, which is a folder'):
        check_pretrained(config)


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
