"""Changes of a config on the command line are read as mmengine reads them, but paths stay whole."""

import argparse
from typing import Any

import pytest
from mmengine.config import DictAction

from sn_openmmlab.runs.cfg_options import CfgOptions


def read(*options: str, action: type[argparse.Action] = CfgOptions) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    parser.add_argument('--cfg-options', nargs='+', action=action)
    return parser.parse_args(['--cfg-options', *options]).cfg_options


def refusal(option: str, capsys: pytest.CaptureFixture) -> str:
    with pytest.raises(SystemExit) as caught:
        read(option)
    assert caught.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize('space', ['', ' '])
@pytest.mark.parametrize(
    'value',
    ['1', '0.01', 'True', 'None', 'in', '[in]', '[ in ]', '(3)', '(3, 4)', '1,2', '[in, ln]',
     '[(1, 2), [a, b], c]', '[]', '()', '', 'a=1', 'a/b-c.pth', "it's", "'x'", '"[a,b]"'],
)  # fmt: skip
def test_values_are_those_of_mmengine(value: str, space: str) -> None:
    options = (f'key={space}{value}', f'other.key={value}{space}')
    assert read(*options) == read(*options, action=DictAction)


@pytest.mark.parametrize('quote', ['', '"', "'"])
@pytest.mark.parametrize(
    'path',
    [
        'a folder/of mine',
        'data (1)/[old] one',
        'mine (1)',
        '[old] one/x',
        '(1) x/y',
        "the user's x",
    ],
)
def test_spaces_of_a_path_stay(path: str, quote: str) -> None:
    assert read(f'data_root={quote}{path}{quote}', 'lr=1') == {'data_root': path, 'lr': 1}


@pytest.mark.parametrize(
    'path',
    ['lr=0.1,wd=1/1.pth', 'a, b/1.pth', '[a] run/[b]', '{run}/1.pth', 'dict(x)/1.pth', '1',
     'x (a, b)/1.pth', 'a (1,2', "the user's"],
)  # fmt: skip
def test_start_of_a_training_is_one_path(path: str) -> None:
    assert read(f'load_from={path}') == read(f'load_from="{path}"') == {'load_from': path}


def test_training_may_start_from_nothing() -> None:
    assert read('load_from=None') == {'load_from': None}


def test_option_without_a_value_is_refused(capsys: pytest.CaptureFixture) -> None:
    assert "--cfg-options takes KEY=VALUE, not 'resume'." in refusal('resume', capsys)


@pytest.mark.parametrize(
    'value',
    ["dict(type='SN',scopes=('in','ln'))", '{"type": "SN"}', 'dict()', "[dict(type='EMAHook')]"],
)
def test_dict_as_a_value_is_refused(value: str, capsys: pytest.CaptureFixture) -> None:
    said = refusal(f'model.norm_cfg={value}', capsys)
    assert 'set its keys one by one, as model.norm_cfg.type=SN.' in said


@pytest.mark.parametrize('value', ['x (a, b)/y', '/d/a(1,2', '[1,2', '(1,2]'])
def test_brackets_that_mmengine_cannot_read_are_refused(
    value: str, capsys: pytest.CaptureFixture
) -> None:
    said = refusal(f'data_root={value}', capsys)
    assert f'cannot read {value!r}: write a list as data_root="[a,b]", or set data_root' in said
    assert 'Traceback' not in said
