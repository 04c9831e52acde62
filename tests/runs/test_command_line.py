"""The arguments that the tools share."""

import os

import pytest

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.command_line import (
    add_launcher,
    config_of,
    config_parser,
    export_local_rank,
    is_first_of_machine,
    run_parser,
)


def test_arguments_are_those_of_the_toolboxes() -> None:
    parser = run_parser('Test.')
    add_launcher(parser)
    args = parser.parse_args(
        [
            'config.py',
            '--work-dir',
            'here',
            '--launcher',
            'pytorch',
            '--local-rank=3',
            '--cfg-options',
            'train_cfg.max_epochs=6',
            'model.scopes=[in,ln]',
            'name=value',
            'flag=True',
        ]
    )
    assert (args.config, args.work_dir, args.launcher) == ('config.py', 'here', 'pytorch')
    assert args.local_rank == 3
    assert args.cfg_options == {
        'train_cfg.max_epochs': 6,
        'model.scopes': ['in', 'ln'],
        'name': 'value',
        'flag': True,
    }


def test_arguments_may_be_left_out() -> None:
    parser = run_parser('Test.')
    add_launcher(parser)
    args = parser.parse_args(['config.py'])
    assert (args.work_dir, args.cfg_options, args.launcher) == (None, None, 'none')


def test_prediction_has_no_work_folder(capsys: pytest.CaptureFixture) -> None:
    assert not hasattr(config_parser('Test.').parse_args(['config.py']), 'work_dir')
    with pytest.raises(SystemExit):
        config_parser('Test.').parse_args(['config.py', '--work-dir', 'here'])


def test_rank_of_an_old_launcher_is_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('LOCAL_RANK', 'to be restored')
    monkeypatch.delenv('LOCAL_RANK')
    export_local_rank(2)
    assert os.environ['LOCAL_RANK'] == '2'


def test_rank_of_torchrun_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('LOCAL_RANK', '1')
    export_local_rank(0)
    assert os.environ['LOCAL_RANK'] == '1'


@pytest.mark.parametrize(
    ('launcher', 'rank', 'first'),
    [
        ('none', None, True),
        ('pytorch', '0', True),
        ('pytorch', '1', False),
        ('slurm', '1', True),
    ],
)
def test_one_process_of_a_machine_is_first(
    launcher: str, rank: str | None, first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv('LOCAL_RANK', raising=False)
    if rank:
        monkeypatch.setenv('LOCAL_RANK', rank)
    assert is_first_of_machine(launcher) is first


@pytest.mark.parametrize('values', [('cuda', None), (None, 'off')])
def test_a_wrong_environment_variable_is_refused_before_anything_is_read(values, set_environment):
    set_environment(*values)

    with pytest.raises(UsageError, match=r'^SN_OPENMMLAB_'):
        config_of(run_parser('Test.').parse_args(['no_such_config.py']))
