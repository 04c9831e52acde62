"""One sentence for a mistake in a config that shows when mmengine builds from it."""

from collections.abc import Iterator
from contextlib import contextmanager

from sn_openmmlab.errors import UsageError

# An error raised in one of these is about what the config gave it.
REGISTRIES = ('mmengine.registry',)
BUILDERS = (
    *REGISTRIES,
    'mmcv.cnn.bricks',
    'sn_openmmlab.hooks',
    'sn_openmmlab.layers',
    'sn_openmmlab.ops.arguments',
)


@contextmanager
def building(what: str, by: tuple[str, ...] = BUILDERS) -> Iterator[None]:
    """Turn an error of the builders themselves into a UsageError about ``what``.

    Examples are an option that a class does not take, a type that is not registered, and an option
    of SN that does not fit. An error inside a class that is built passes unchanged, since its
    traceback is needed.

    Args:
        what: the name of what is built, for the message.
        by: modules of the builders; only those of the registries if layers run, too.

    Raises:
        UsageError: a builder failed.
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
    """Return the module of the innermost frame."""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_globals.get('__name__', '')
