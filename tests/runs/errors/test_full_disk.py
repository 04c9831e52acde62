"""A training that has no more room ends with a sentence."""

import errno
import logging
import os

import pytest

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.errors.full_disk import stopping_on_a_full_disk


@pytest.mark.parametrize('number', [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS])
@pytest.mark.parametrize(
    ('file', 'named'), [('run/iter_2.pth', 'run/iter_2.pth'), (None, 'a file')]
)
def test_no_room(number: int, file: str | None, named: str) -> None:
    said = f'the training stops, since {named} cannot be written: {os.strerror(number)}; '
    with pytest.raises(UsageError, match=said) as caught, stopping_on_a_full_disk():
        assert not logging.raiseExceptions
        raise OSError(number, os.strerror(number), file)
    assert 'go on with --resume' in str(caught.value)
    assert logging.raiseExceptions


@pytest.mark.parametrize('error', [FileNotFoundError(errno.ENOENT, 'absent'), ValueError('other')])
def test_other_errors_pass(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, stopping_on_a_full_disk():
        raise error
    assert caught.value is error
