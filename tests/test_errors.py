"""A command line shows what the user did wrong as one sentence."""

import pytest

from sn_openmmlab.errors import UsageError, exit_with_sentence


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
