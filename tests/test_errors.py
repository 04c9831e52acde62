"""A command line shows what the user did wrong as one sentence."""

import sys
from types import SimpleNamespace

import pytest
from torch.utils.data import DataLoader, Dataset

from sn_openmmlab.errors import UsageError, exit_with_sentence, warn_user


def test_usage_error_becomes_one_sentence(capsys: pytest.CaptureFixture) -> None:
    def main() -> None:
        raise UsageError('there is no file.')

    with pytest.raises(SystemExit) as caught:
        exit_with_sentence(main)
    assert caught.value.code == 2
    output = capsys.readouterr()
    assert (output.out, output.err) == ('', 'error: there is no file.\n')


def test_other_errors_keep_their_traceback() -> None:
    def main() -> None:
        raise ValueError('a bug')

    with pytest.raises(ValueError, match='a bug'):
        exit_with_sentence(main)


def test_success_does_not_exit(capsys: pytest.CaptureFixture) -> None:
    exit_with_sentence(lambda: print('done'))
    assert capsys.readouterr().out == 'done\n'


def test_error_of_a_worker_process_is_its_sentence_alone(capsys: pytest.CaptureFixture) -> None:
    class Broken(Dataset):
        def __len__(self) -> int:
            return 1

        def __getitem__(self, index: int) -> None:
            try:
                raise ValueError('deep\ninside')
            except ValueError as error:
                raise UsageError('a: b.jpg: ends early.') from error

    with pytest.raises(SystemExit) as caught:
        exit_with_sentence(lambda: list(DataLoader(Broken(), num_workers=1)))
    assert caught.value.code == 2
    assert capsys.readouterr().err == 'error: a: b.jpg: ends early.\n'


def test_development_mode_shows_the_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def main() -> None:
        try:
            raise ValueError('deep inside')
        except ValueError as error:
            raise UsageError('there is no file.') from error

    flags = SimpleNamespace(dev_mode=True)
    stand_in = SimpleNamespace(flags=flags, stderr=sys.stderr, exit=sys.exit)
    monkeypatch.setattr('sn_openmmlab.errors.sys', stand_in)
    with pytest.raises(SystemExit):
        exit_with_sentence(main)
    said = capsys.readouterr().err
    assert 'ValueError: deep inside' in said
    assert said.endswith('\nerror: there is no file.\n')


def test_warning_is_a_line_on_stderr(capsys: pytest.CaptureFixture) -> None:
    warn_user('two boxes have no area.')
    assert capsys.readouterr().err == 'warning: two boxes have no area.\n'
