"""Errors are cut to what went wrong."""

import pytest

from studies.zoos.reasons import reason_of


@pytest.mark.parametrize(
    ('error', 'reason'),
    [
        (
            RuntimeError('lap is not installed,        please install it by: pip install lap'),
            'RuntimeError: lap is not installed, please install it by: pip install lap',
        ),
        (
            FileNotFoundError('file "/home/me/.venv/lib/mmdet/.mim/configs/a/b.py" does not exist'),
            'FileNotFoundError: file "a/b.py" does not exist',
        ),
        (
            KeyError('X is not in the mmdet::model registry. Please check whether it is right'),
            "KeyError: 'X is not in the mmdet::model registry",
        ),
        (ValueError('one.\n  two'), 'ValueError: one'),
    ],
)
def test_a_reason_is_one_short_sentence(error: Exception, reason: str) -> None:
    assert reason_of(error) == reason
