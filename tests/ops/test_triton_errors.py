"""One phrase for why Triton does not run, with what to do where that is known."""

import errno
import subprocess

import pytest

from sn_openmmlab.ops.triton_errors import MOST_LETTERS, explain


@pytest.mark.parametrize(
    'error',
    [
        RuntimeError('Failed to find C compiler. Please specify via CC environment variable or …'),
        # without the headers of Python
        subprocess.CalledProcessError(1, ['/usr/bin/gcc', '/tmp/main.c', '-O3', '-shared']),
        FileNotFoundError(errno.ENOENT, 'No such file or directory', 'my-cc'),
    ],
)
def test_it_names_the_compiler_that_is_missing(error):
    found = explain(error)

    assert 'install gcc and python3-dev, or name another compiler in CC' in found
    assert type(error).__name__ in found


@pytest.mark.parametrize('number', [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_it_names_the_folder_that_cannot_be_written(number):
    found = explain(OSError(number, 'no', '/root/.triton'))

    assert 'set TRITON_CACHE_DIR to a folder' in found and '/root/.triton' in found


def test_any_other_error_says_itself_in_one_line():
    error = ValueError("type fp8e4nv not supported in this architecture.\n  The supported are: ''")

    assert explain(error) == (
        "ValueError: type fp8e4nv not supported in this architecture. The supported are: ''"
    )
    assert explain(KeyError()) == 'KeyError'
    assert explain(RuntimeError('Device lost.')) == 'RuntimeError: Device lost'
    assert explain(OSError('libcuda.so.1: cannot open')) == 'OSError: libcuda.so.1: cannot open'


def test_a_long_text_keeps_its_start_and_its_end():
    found = explain(RuntimeError('at 7:4:\n' + 'def kernel(x):\n' * 99 + 'no such instruction'))

    assert found.startswith('RuntimeError: at 7:4: def') and found.endswith('no such instruction')
    assert len(found) <= MOST_LETTERS + 3
