"""Say in one phrase why Triton does not run."""

import errno
import subprocess

NO_PROGRAM = (subprocess.CalledProcessError, FileNotFoundError)
CANNOT_WRITE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)
# Longer texts lose their middle: the compiler's say what is wrong at the end.
MOST_LETTERS = 300


def explain(error: Exception) -> str:
    """Return what an error of Triton says, and what to do where that is known."""
    text = ' '.join(str(error).split()).rstrip('.')
    said = _shorten(f'{type(error).__name__}: {text}' if text else type(error).__name__)
    if 'C compiler' in text or (isinstance(error, NO_PROGRAM) and 'ptxas' not in text):
        return (
            'Triton needs a C compiler and the headers of Python, so install gcc and python3-dev, '
            f'or name another compiler in CC ({said})'
        )
    if isinstance(error, OSError) and error.errno in CANNOT_WRITE:
        return f'Triton cannot write its files, so set TRITON_CACHE_DIR to a folder ({said})'
    return said


def _shorten(text: str) -> str:
    if len(text) <= MOST_LETTERS:
        return text
    half = MOST_LETTERS // 2
    return f'{text[:half].rstrip()} … {text[-half:].lstrip()}'
