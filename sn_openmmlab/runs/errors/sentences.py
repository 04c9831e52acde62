"""One sentence for what a config has wrong and shows only when mmengine builds from it or runs."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mmengine.config import Config

from sn_openmmlab.checkpoints.names import few
from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.errors.places import find_place, images_of
from sn_openmmlab.runs.errors.texts import text_of
from sn_openmmlab.runs.errors.traces import is_for_a_traceback

_REMEDY = 'correct the config or the data (python -X dev shows the traceback)'


@contextmanager
def building(what: str, config: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Turn an error while something is built from a config into a UsageError.

    An error of the user's own modules passes unchanged, since its traceback is needed, and so does
    one that is a fault of this package.

    Args:
        what: the name of what is built, for the message.
        config: where to look up the key of the part that fails; None if there is no config.

    Raises:
        UsageError: a class does not take what the config gives it, or is not registered.
    """
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        if is_for_a_traceback(error):
            raise
        place = find_place(error, config or {})
        said = f'{place}: {text_of(error)}' if place else text_of(error)
        raise UsageError(f'{what} cannot be built: {said}: {_REMEDY}.') from error


@contextmanager
def running(what: str, config: Config) -> Iterator[None]:
    """Turn an error while a runner trains or tests into a UsageError, as `building` does.

    Args:
        what: what is done, such as ``'the training'``.
        config: of the run, with its file name.

    Raises:
        UsageError: a part of the run fails on what the config or the data give it.
    """
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        if is_for_a_traceback(error):
            raise
        place = find_place(error, config)
        if place and place.is_built:
            said = f'what {config.filename} describes cannot be built: {place}: {text_of(error)}'
        else:
            where = f' in {place}' if place else ''
            where += f' on {few(images)}' if (images := images_of(error)) else ''
            said = f'{what} that {config.filename} describes fails{where}: {text_of(error)}'
        raise UsageError(f'{said}: {_REMEDY}.') from error
