"""The errors that a command line shows as one sentence."""

import sys
from collections.abc import Callable


class UsageError(Exception):
    """What the user gave cannot be used; the message says what was wrong and what to do."""


class WeightsError(UsageError, RuntimeError):
    """The weights are those of another network; a RuntimeError, as torch's own are."""


class InputError(UsageError, ValueError):
    """A layer is given what it is not made for; a ValueError, as torch's own are."""


def exit_with_sentence(main: Callable[[], None]) -> None:
    """Run ``main``; a UsageError becomes one sentence on stderr and exit code 2."""
    try:
        main()
    except UsageError as error:
        print(f'error: {error}', file=sys.stderr)
        sys.exit(2)
