"""Whose code an error comes from."""

import os
import re
import sys
import sysconfig
from types import FrameType

import torch

from sn_openmmlab.runs.zoo import TOOLBOXES

_OWN = __name__.partition('.')[0]
# Parts of this package whose errors are about what they are given.
_CHECKS = tuple(f'{_OWN}.{part}' for part in ('hooks', 'layers', 'ops.arguments', 'runs'))
_LIBRARIES = {*sys.stdlib_module_names, *TOOLBOXES, 'mmengine', 'mmcv', 'torch', _OWN}
# A frame in the text of an error that comes from a worker process.
_FRAME = re.compile(r'^ *File "(.+)", line \d+, in ', re.MULTILINE)
_INSTALLED = tuple({sysconfig.get_path(name) for name in ('purelib', 'platlib', 'stdlib')})


def frames_of(error: BaseException) -> list[FrameType]:
    """Return the frames through which an error went, the innermost one last."""
    found, trace = [], error.__traceback__
    while trace is not None:
        found.append(trace.tb_frame)
        trace = trace.tb_next
    return found


def module_of(frame: FrameType) -> str:
    """Return the name of the module of a frame."""
    return frame.f_globals.get('__name__', '')


def is_for_a_traceback(error: Exception, skipped: int = 2) -> bool:
    """Return whether an error is a fault of code, whose traceback is needed, not of its input.

    It is one if it went through a module that belongs to neither the toolboxes, an installed
    library nor this package, or if this package did not foresee it.

    Args:
        error: that was caught.
        skipped: its outer frames that say nothing: where it was caught and, for a context manager
            of ``contextlib``, that of the ``with`` statement.
    """
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return False
    frames = frames_of(error)
    if any(map(_is_foreign, frames[skipped:])) or _is_foreign_in_worker(str(error)):
        return True
    innermost = module_of(frames[-1])
    return innermost.startswith(f'{_OWN}.') and not innermost.startswith(_CHECKS)


def is_of_users_module(error: BaseException) -> bool:
    """Return whether an error went through a module of the user, of which a config is none."""
    return any(module_of(frame) and _is_foreign(frame) for frame in frames_of(error)[1:])


def _is_foreign(frame: FrameType) -> bool:
    package = module_of(frame).partition('.')[0]
    file = frame.f_code.co_filename
    # Compiled modules and the import system name no file of this machine.
    return package not in _LIBRARIES and os.path.isabs(file) and not file.startswith(_INSTALLED)


def _is_foreign_in_worker(said: str) -> bool:
    """Return whether an error went through foreign code in a worker process, as torch says it."""
    _, found, trace = said.partition('\nOriginal Traceback')
    if not found:
        return False
    modules = [getattr(sys.modules.get(name), '__file__', None) for name in _LIBRARIES]
    known = (*_INSTALLED, *(os.path.dirname(file) for file in modules if file))
    return any(os.path.isabs(x) and not x.startswith(known) for x in _FRAME.findall(trace))
