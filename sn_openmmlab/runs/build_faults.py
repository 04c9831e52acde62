"""What a config describes wrongly and mmengine finds when it builds: a sentence in its place."""

from collections.abc import Iterator
from contextlib import contextmanager

from sn_openmmlab.errors import UsageError

# Where one of these refuses what it was given, that came from the config.
REGISTRIES = ('mmengine.registry',)
BUILDERS = (*REGISTRIES, 'mmcv.cnn.bricks', 'sn_openmmlab.layers', 'sn_openmmlab.ops.arguments')


@contextmanager
def building(what: str, by: tuple[str, ...] = BUILDERS) -> Iterator[None]:
    """Turn an error of the builders themselves into a UsageError about ``what``.

    Such are an option that a class does not take, a type that nobody registered, and an option of
    SN that does not fit. An error from inside of a class that is built stays what it is: its
    traceback is needed.

    Args:
        what: what is built, for people.
        by: the builders; the registries alone where layers run, too.

    Raises:
        UsageError: see above.
    """
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        if not _raised_in(error).startswith(by):
            raise
        # The text of a KeyError has quotes around it.
        said = str(error.args[0] if error.args else error).strip().split('\n')[0]
        said = said.rstrip('.') or type(error).__name__
        raise UsageError(f'{what} cannot be built: {said}.') from error


def _raised_in(error: Exception) -> str:
    """The module of the innermost frame."""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_globals.get('__name__', '')
