"""Run a tool on a spoiled config, in a fork of this process, which has imported the toolboxes."""

import ctypes
import gc
import importlib
import os
import runpy
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import cv2

from studies.mistakes.case import Case, Scene
from studies.mistakes.configs import ROOT, good_config

LIMIT = 120
_NOT_SPOILED = 99
# What a training imports; a fork has it for nothing.
_IMPORTS = (
    'matplotlib.pyplot',
    'mmengine.runner',
    'torch._dynamo',
    *(
        f'{toolbox}.{part}'
        for toolbox in ('mmdet', 'mmseg', 'mmpretrain')
        for part in ('models', 'datasets', 'engine', 'evaluation', 'visualization')
    ),
    *(f'sn_openmmlab.{part}' for part in ('registration', 'runs.runner', 'runs.weights.check')),
    *(f'sn_openmmlab.runs.{part}' for part in ('data.check', 'dump', 'options', 'weights.files')),
)


class Ran(NamedTuple):
    """What a tool did.

    Attributes:
        code: its exit code; negative if a signal ended it.
        stdout: what it printed.
        stderr: what it printed as errors and warnings.
    """

    code: int
    stdout: str
    stderr: str


def import_toolboxes() -> None:
    """Import what trainings import, so that a fork need not, and leave out what takes long."""
    for name in _IMPORTS:
        with suppress(ImportError):
            importlib.import_module(name)
    with suppress(ImportError):
        from yapf.yapflib import yapf_api

        # mmengine formats the config five times.
        yapf_api.FormatCode = lambda text, **options: (text, False)
    with suppress(ImportError):
        from mmengine.runner import runner

        runner.collect_env = dict
    # The threads of a pool do not survive a fork.
    cv2.setNumThreads(1)
    # mmengine collects garbage once for each dataset.
    gc.collect()
    gc.freeze()


def run_case(case: Case, data: Path, folder: Path) -> Ran:
    """Spoil a copy of good data and a good config, and run the tool on them, in a fork.

    Args:
        case: the mistake.
        data: the good data, which stay as they are.
        folder: is made, and holds all that the tool reads and writes.

    Raises:
        RuntimeError: the mistake cannot be made.
    """
    folder.mkdir()
    config = good_config(case.task)
    outputs = [folder / '.stdout', folder / '.stderr']
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if not child:
        _become(case, Scene(folder, config), data, outputs)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said = [file.read_text(errors='replace') for file in outputs]
    for file in outputs:
        file.unlink()
    if code == _NOT_SPOILED:
        raise RuntimeError(f'{case.name}: {said[1]}')
    return Ran(code, *said)


def written(config: dict[str, Any]) -> str:
    """Return the text of a config file."""
    lines = [f'{key} = {value!r}\n' for key, value in config.items()]
    return ''.join(["nan, inf = float('nan'), float('inf')\n", *lines, 'del nan, inf\n'])


def _become(case: Case, scene: Scene, data: Path, outputs: list[Path]) -> None:
    """Spoil the data and the config, and become the tool; never return."""
    code = _NOT_SPOILED
    try:
        for number, name in enumerate((Path(os.devnull), *outputs)):
            file = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
            os.dup2(file, number)
            os.close(file)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(i, 'rw'[i > 0]) for i in range(3))
        signal.alarm(LIMIT)
        os.chdir(scene.folder)
        _spoil(case, scene, data)
        sys.argv = [case.tool, 'config.py', *scene.arguments]
        sys.path[:0] = [str(ROOT / 'tools')]
        _obey_permissions()
        code = 1
        runpy.run_path(str(ROOT / 'tools' / case.tool), run_name='__main__')
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _spoil(case: Case, scene: Scene, data: Path) -> None:
    shutil.copytree(data, scene.data)
    if case.tool == 'test.py':
        scene.arguments.append('weights.pth')
    scene.arguments += ['--work-dir', 'work']
    case.spoil(scene)
    config = scene.folder / 'config.py'
    if not config.exists():
        config.write_text(written(scene.config))


def _obey_permissions() -> None:
    """Give up the right of root to write where permissions forbid it."""
    if sys.platform != 'linux' or os.geteuid():
        return
    # linux/capability.h: version 3, this process, and no capability that root would have.
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    ctypes.CDLL(None).capset(header, (ctypes.c_uint32 * 6)())
