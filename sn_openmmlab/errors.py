"""The errors that a command line shows as one sentence."""

import sys
import traceback
from collections.abc import Callable


class UsageError(Exception):
    """An input of the user cannot be used; the message says what is wrong and what to do."""


class WeightsError(UsageError, RuntimeError):
    """The weights belong to another network; a RuntimeError, like torch's own."""


class InputError(UsageError, ValueError):
    """A layer gets an input that it is not made for; a ValueError, like torch's own."""


def exit_with_sentence(main: Callable[[], None]) -> None:
    """Run ``main``; turn a UsageError into one sentence on stderr and exit code 2.

    In Python's development mode (``python -X dev``) the traceback comes before it.
    """
    try:
        main()
    except UsageError as error:
        if sys.flags.dev_mode:
            traceback.print_exception(error)
        print(f'error: {_sentence(error)}', file=sys.stderr)
        sys.exit(2)


def warn_user(sentence: str) -> None:
    """Print a warning on stderr, for what is checked before a run has a log."""
    print(f'warning: {sentence}', file=sys.stderr)


def _sentence(error: UsageError) -> str:
    """Return the message, without the traceback that torch adds to it in a worker process."""
    said = str(error)
    if said.startswith('Caught ') and '\nOriginal Traceback' in said:
        return said.strip().rpartition('\n')[2].partition(': ')[2]
    return said
