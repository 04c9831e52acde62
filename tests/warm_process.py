"""Import the toolboxes once, which takes seconds, then fork for each script.

Each line of stdin is a JSON list of jobs to run at the same time (see ``tests.processes.Job``).
The answer to it is a line of stdout: the JSON list of their exit codes.
"""

import atexit
import ctypes
import importlib
import json
import os
import runpy
import signal
import sys
import threading
from contextlib import suppress

from toolbox_caches import find_configs_once, format_configs_once

# Of sys/prctl.h.
PR_SET_PDEATHSIG = 1

# What a training or evaluation imports, except for this repository.
IMPORTS = (
    'torch._dynamo',
    'mmengine.runner',
    'matplotlib.pyplot',
    *(
        f'{toolbox}.{part}'
        for toolbox in ('mmdet', 'mmseg', 'mmpretrain')
        for part in ('models', 'datasets', 'engine', 'evaluation', 'visualization', 'apis')
    ),
)


def main() -> None:
    _end_with_parent()
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    for name in IMPORTS:
        with suppress(ImportError):
            importlib.import_module(name)
    find_configs_once()
    format_configs_once()
    sys.stdout.flush()
    for line in sys.stdin:
        forks = []
        for job in json.loads(line):
            forks.append(os.fork())
            if not forks[-1]:
                answers.close()
                return run(**job)
        codes = [os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]) for fork in forks]
        print(json.dumps(codes), file=answers, flush=True)


def run(
    args: list[str], cwd: str, env: dict[str, str], limit: int, stdout: str, stderr: str
) -> None:
    """Become ``python *args``, whose first argument is a script."""
    _end_with_parent()
    for number, name in enumerate((os.devnull, stdout, stderr)):
        file = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
        os.dup2(file, number)
        os.close(file)
    signal.alarm(limit)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = args
    sys.path[0] = os.path.dirname(args[0])
    try:
        runpy.run_path(args[0], run_name='__main__')
        code = 0
    except SystemExit as error:
        code = error.code
    except Exception:
        sys.excepthook(*sys.exc_info())
        code = 1
    _end(code)


def _end(code: object) -> None:
    """End as an interpreter does, but without taking its modules apart, which takes seconds."""
    if not isinstance(code, int | None):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code or 0)


def _end_with_parent() -> None:
    """Ask Linux to kill this process when its parent ends, however that ends."""
    if sys.platform == 'linux':
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == '__main__':
    main()
