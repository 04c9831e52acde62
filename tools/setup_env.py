"""Create the virtual environment of one toolbox stack: ``python3 tools/setup_env.py onedl``.

Runs on the system's Python with the standard library alone. All versions come from the extras in
pyproject.toml. A complete environment returns at once; an interrupted set-up is continued.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Of each stack the environment, the name of mmcv, and the minutes in which one core compiles it.
STACKS = {'onedl': ('.venv', 'onedl-mmcv', 28), 'openmmlab': ('.venv-openmmlab', 'mmcv', 40)}
# Installs into an environment what torchvision, which MMPretrain imports, needs there.
DECLARATION = ROOT / 'tools' / 'declare_torchvision_ops.py'
# What the package's C++ kernels are compiled from: when it changes, so must the build.
KERNELS = Path('sn_openmmlab', 'kernels', 'cpp', 'csrc')
# What the output of a failed command says, and the sentence for it; the first match counts. Pip
# warns about the network and tries again, so that comes last.
CAUSES = {
    'No space left on device|Disk quota exceeded': (
        'the disk is full: free a few GB, also where TMPDIR points, and run this again'
    ),
    'Killed signal terminated program|virtual memory exhausted': (
        'the compiler ran out of memory: run this again with MAX_JOBS=1 in front'
    ),
    'CUDA_HOME environment variable is not set': (
        "the CUDA compiler (nvcc) is missing: install the CUDA toolkit of PyTorch's version, or "
        'build for the CPU only with CUDA_VISIBLE_DEVICES= in front'
    ),
    'ninja: build stopped': "mmcv did not compile: search setup.log for 'error:'",
    '(?:ImportError|ModuleNotFoundError): .*mmcv[./]_ext': (
        "pip's cache has an mmcv for another PyTorch: run python3 -m pip cache remove '*mmcv*', "
        'remove the environment and run this again'
    ),
    'ConnectionError|Connect(?:ion)?Timeout|NameResolution|ReadTimeout|ProxyError|SSLError'
    '|Connection (?:reset|aborted|broken)|Network is unreachable': (
        'pip could not reach the package index: check the network and run this again'
    ),
}
READ_EXTRAS = """
import json
try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib
with open("pyproject.toml", "rb") as file:
    print(json.dumps(tomllib.load(file)["project"]["optional-dependencies"]))
"""


class SetupError(Exception):
    """The set-up cannot go on; the message says why and what to do."""


def set_up(stack: str) -> None:
    """Complete the environment of a stack; raise SetupError if a step fails."""
    if not (3, 10) <= sys.version_info[:2] <= (3, 13):
        raise SetupError(
            f'Python 3.10 to 3.13 is needed, but {sys.executable} is {sys.version.split()[0]}: '
            'choose another one, as in make env PYTHON=python3.11'
        )
    started, venv = time.monotonic(), ROOT / STACKS[stack][0]
    python, stamp = venv / 'bin' / 'python', venv / '.complete'
    # A checkout that was moved must be installed again.
    kernels = (ROOT / KERNELS).glob('*')
    files = [ROOT / 'pyproject.toml', DECLARATION, *ROOT.glob('setup.py'), *kernels]
    parts = [stack.encode(), os.fsencode(ROOT), *(file.read_bytes() for file in sorted(files))]
    content = hashlib.sha256(b'\0'.join(parts)).hexdigest()
    if python.exists() and stamp.is_file() and stamp.read_text() == content:
        say(f'{venv.name} is complete')
        return
    venv.mkdir(exist_ok=True)
    stamp.unlink(missing_ok=True)
    say(f'setting up {venv.name} (details in {venv.name}/setup.log)')
    (venv / 'setup.log').write_text('')
    create(venv, python)
    install(stack, venv, python)
    stamp.write_text(content)
    say(f'{venv.name} is complete, after {duration(time.monotonic() - started)}')


def create(venv: Path, python: Path) -> None:
    """Create the virtual environment, unless it is there and its pip works."""
    works = [str(python), '-m', 'pip', '--version']
    if not python.exists() or subprocess.run(works, capture_output=True).returncode:
        remedy = (
            f'could not create {venv.name}: install the module venv (Debian, Ubuntu: apt install '
            f'python3.{sys.version_info[1]}-venv), remove {venv.name} and run this again'
        )
        run([sys.executable, '-m', 'venv', str(venv)], venv, remedy)


def install(stack: str, venv: Path, python: Path) -> None:
    """Install torch and the build tools, then the toolboxes and this package; import them."""
    extras = json.loads(run([str(python), '-c', READ_EXTRAS], venv, 'cannot read the extras')[-1])
    progress = Progress(stack)

    def pip(*arguments: str) -> None:
        command = [str(python), '-m', 'pip', 'install', '-v', '--progress-bar', 'off']
        run([*command, *arguments], venv, 'pip could not install the packages', progress)

    say('1/3 PyTorch, NumPy and build tools (a large download)')
    first = re.compile(r'(?:torch|numpy|setuptools)==')
    pip(*filter(first.match, extras[stack]), *extras['build'])
    say('2/3 the OpenMMLab toolboxes, this package, and the tools for its demo, tests and docs')
    own = [extra for extra in ('demo', 'dev', 'docs') if extra in extras]
    pip('--no-build-isolation', '-e', f'.[{",".join([stack, *own])}]')
    if subprocess.run([str(python), '-c', 'import cv2'], capture_output=True).returncode:
        say('   OpenCV finds no libGL: taking its headless build')
        (pin,) = (pin for pin in extras[stack] if pin.startswith('opencv-python=='))
        pip('--force-reinstall', '--no-deps', pin.replace('python', 'python-headless'))
    say('3/3 checking that mmcv.ops, mmdet, mmseg and mmpretrain import')
    run([str(python), str(DECLARATION)], venv, 'cannot write into the environment')
    code = 'import mmcv.ops, mmdet, mmseg, mmpretrain'
    run([str(python), '-c', code], venv, f'the packages are installed, but {code!r} fails')


class Progress:
    """Print what matters of pip's output: large downloads, and how far mmcv is compiled."""

    def __init__(self, stack: str, clock: Callable[[], float] = time.monotonic) -> None:
        _, self.mmcv, self.minutes = STACKS[stack]
        self.clock = clock
        self.started: float | None = None

    def __call__(self, line: str) -> None:
        """Take one line of the output."""
        file = re.match(r'\s*Downloading (?:\S*/)?(\S+ \((?:\d{2,}\.\d MB|[\d.]+ GB)\))', line)
        step = re.match(r'\s*\[(\d+)/(\d+)\] ', line)
        if file:
            say(f'   downloading {file[1]}')
        elif re.search(rf'Building wheel for {self.mmcv} ', line) and self.started is None:
            require_compiler()
            self.started = self.clock()
            minutes = math.ceil(self.minutes / jobs())
            say(f'   compiling mmcv: about {minutes} minutes with MAX_JOBS={jobs()}, only once')
        elif step and self.started is not None:
            done, total = int(step[1]), int(step[2])
            if done % 5 == 0 or done == total:
                passed = duration(self.clock() - self.started)
                say(f'   mmcv: {done} of {total} files compiled in {passed}')
        elif re.search(rf'Created wheel for {self.mmcv}:', line):
            self.started = None


def require_compiler() -> None:
    """Raise SetupError if the C++ compiler or Python's headers that mmcv needs are missing."""
    compiler = (os.environ.get('CXX') or 'c++').split()[0]
    header = Path(sysconfig.get_path('include'), 'Python.h')
    if not shutil.which(compiler) or not header.is_file():
        missing = header if shutil.which(compiler) else f'the C++ compiler {compiler}'
        raise SetupError(
            f'mmcv must be compiled here, but {missing} is missing: install it (Debian, Ubuntu: '
            'apt install g++ python3-dev) and run this again'
        )


def run(
    command: list[str], venv: Path, fault: str, watch: Callable[[str], None] = lambda line: None
) -> list[str]:
    """Run a command with its output in the log, and return the output's lines.

    Raises:
        SetupError: the command failed; the message is that of a known cause, or else ``fault``.
    """
    # CAUSES are in English.
    own = {'MMCV_WITH_OPS': '1', 'MAX_JOBS': str(jobs()), 'LC_ALL': 'C.UTF-8'}
    pipe = {'stdin': subprocess.DEVNULL, 'stdout': subprocess.PIPE, 'stderr': subprocess.STDOUT}
    text = {'encoding': 'utf-8', 'errors': 'replace'}
    environment = {**os.environ, **own, 'PYTHONUNBUFFERED': '1'}
    output = []
    with (
        open(venv / 'setup.log', 'a', encoding='utf-8', buffering=1) as log,
        subprocess.Popen(command, cwd=ROOT, env=environment, **pipe, **text) as process,
    ):
        try:
            for line in process.stdout:
                log.write(line)
                output.append(line.rstrip())
                watch(line)
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        say(f'--- the last lines of {venv.name}/setup.log:', *output[-20:], '---')
        raise SetupError(explain('\n'.join(output), fault))
    return output


def explain(text: str, otherwise: str) -> str:
    """Return the sentence for the output of a failed command."""
    known = (cause for pattern, cause in CAUSES.items() if re.search(pattern, text))
    return next(known, otherwise)


def jobs() -> int:
    """Return how many files are compiled at a time: MAX_JOBS, or one for each usable core."""
    wish = os.environ.get('MAX_JOBS', '')
    usable = len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()
    return int(wish) if wish.isdigit() and int(wish) else usable or 1


def duration(seconds: float) -> str:
    """Return a time span in words, such as '45 s' or '2 min 05 s'."""
    minutes, rest = divmod(round(seconds), 60)
    return f'{minutes} min {rest:02d} s' if minutes else f'{rest} s'


def say(*lines: str) -> None:
    """Print lines at once."""
    print(*lines, sep='\n', flush=True)


def main() -> None:
    """Set up the stack that the command line names, or exit with one sentence."""
    parser = argparse.ArgumentParser(description='create the virtual environment of one stack')
    parser.add_argument('stack', choices=STACKS)
    stack = parser.parse_args().stack
    try:
        set_up(stack)
    except (SetupError, OSError) as error:
        print(f'error: {explain(str(error), str(error))}.', file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print('error: interrupted; run this again to continue.', file=sys.stderr)
        sys.exit(2)


if __name__ == '__main__':
    main()
