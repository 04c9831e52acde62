"""What an error says, in the words of a sentence."""

import re
from difflib import get_close_matches

from mmengine.registry import Registry

from sn_openmmlab.runs.errors.traces import frames_of, module_of

# Their errors are sentences already: no function need be named.
_CLEAR = ('mmengine.registry', 'sn_openmmlab')
_LONGEST = 300
# mmengine adds these: where to read more, and the object whose method failed.
_TAILS = re.compile(r' More details can be found at .*| in <[\w.]+ object at 0x[0-9a-f]+>')
_UNREGISTERED = re.compile(r'^(\S+) is not in the \S+ registry')


def text_of(error: BaseException) -> str:
    """Return what an error says, without a full stop, and the function that raised it."""
    said = _words(error)
    if '\nOriginal Traceback' in said:
        # An error of a worker process: its last line is the error itself.
        said = said.splitlines()[-1]
    said = _shortened(_TAILS.sub('', said.split('\n')[0])).rstrip('. ')
    frame = frames_of(error)[-1]
    if module_of(frame).startswith(_CLEAR):
        return (said or type(error).__name__) + _advice(said, frame.f_locals.get('registry'))
    where = f'{type(error).__name__} in {frame.f_code.co_name} of {module_of(frame)}'
    return f'{said} ({where})' if said else where


def _words(error: BaseException) -> str:
    if not isinstance(error, KeyError) or not error.args:
        return str(error).strip()
    # The text of a KeyError has quotes around it, and mostly is the key alone.
    said = str(error.args[0]).strip()
    return said if ' ' in said else f'there is no {said!r}'


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f'{text[: _LONGEST - 1]}…'


def _advice(said: str, registry: Registry | None) -> str:
    """Return the registered name that is most like one that is not registered."""
    unknown = _UNREGISTERED.match(said)
    if not unknown or not isinstance(registry, Registry):
        return ''
    names: list[str] = []
    while registry is not None:
        names += registry.module_dict
        registry = registry.parent
    close = get_close_matches(unknown[1], names, n=1)
    return f' (the most similar name there is {close[0]})' if close else ''
