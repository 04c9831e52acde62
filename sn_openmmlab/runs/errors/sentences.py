"""One sentence for what a config has wrong and shows only when mmengine builds from it or runs."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from mmengine.config import Config

from sn_openmmlab.checkpoints.names import few
from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.errors.places import find_place, images_of
from sn_openmmlab.runs.errors.texts import text_of
from sn_openmmlab.runs.errors.traces import is_for_a_traceback

_REMEDY = 'correct the config or the data (python -X dev shows the traceback)'


def building(what: str, config: Mapping[str, Any] | None = None) -> AbstractContextManager[None]:
    """Turn an error while something is built from a config into a UsageError.

    An error of the user's own modules passes unchanged, since its traceback is needed, and so does
    one that is a fault of this package.

    Args:
        what: the name of what is built, for the message.
        config: where to look up the key of the part that fails; None if there is no config.

    Raises:
        UsageError: a class does not take what the config gives it, or is not registered.
    """

    def say(error: Exception) -> str:
        place = find_place(error, config or {})
        return f'{what} cannot be built: {f"{place}: " if place else ""}{text_of(error)}'

    return _in_a_sentence(say)


def running(what: str, config: Config) -> AbstractContextManager[None]:
    """Turn an error while a runner trains or tests into a UsageError, as `building` does.

    Args:
        what: what is done, such as ``'the training'``.
        config: of the run, with its file name.

    Raises:
        UsageError: a part of the run fails on what the config or the data give it.
    """

    def say(error: Exception) -> str:
        place = find_place(error, config)
        if place and place.is_built:
            return f'what {config.filename} describes cannot be built: {place}: {text_of(error)}'
        where = f' in {place}' if place else ''
        where += f' on {few(images)}' if (images := images_of(error)) else ''
        return f'{what} that {config.filename} describes fails{where}: {text_of(error)}'

    return _in_a_sentence(say)


@contextmanager
def _in_a_sentence(say: Callable[[Exception], str]) -> Iterator[None]:
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        if is_for_a_traceback(error):
            raise
        raise UsageError(f'{say(error)}: {_REMEDY}.') from error
