"""Create the virtual environment of one toolbox stack: ``python3 tools/setup_env.py onedl``.

Runs on the bare system Python, standard library only. All versions come from the extras in
pyproject.toml. A finished environment returns at once; an interrupted one is continued.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import importlib.util
import json
import math
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Stack:
    """One distribution of the toolboxes and what compiling its mmcv takes."""

    name: str
    venv: str
    mmcv: str
    cpp_files: int
    core_minutes: int


STACKS = {
    stack.name: stack
    for stack in (
        Stack('onedl', '.venv', 'onedl-mmcv', cpp_files=78, core_minutes=28),
        Stack('openmmlab', '.venv-openmmlab', 'mmcv', cpp_files=77, core_minutes=40),
    )
}

DISK_FULL = 'the disk is full: free a few GB (also where TMPDIR points), then run this again'

# What a failed command's output says about the cause; the first match wins. Network warnings
# come late because pip retries: they explain a failure only when nothing else does.
CAUSES = (
    (r'No space left on device|Disk quota exceeded', DISK_FULL),
    (
        r'Killed signal terminated program|virtual memory exhausted',
        'the compiler ran out of memory: run this again with MAX_JOBS=1 in front',
    ),
    (
        r'CUDA_HOME environment variable is not set',
        'PyTorch sees a GPU, but the CUDA compiler (nvcc) that mmcv then needs is missing: install'
        " the CUDA toolkit of PyTorch's version, or put CUDA_VISIBLE_DEVICES= in front to build"
        ' for the CPU only',
    ),
    (
        r'lib(?:GL|gthread-2\.0|glib-2\.0)\.so',
        'OpenCV needs system libraries that are missing (Debian, Ubuntu: apt install libgl1'
        ' libglib2.0-0)',
    ),
    (
        r'ninja: build stopped|Failed building wheel for (?:onedl-)?mmcv\b',
        "mmcv did not compile: search the log for 'error:'",
    ),
    (
        r'NewConnectionError|ConnectTimeoutError|NameResolutionError|ReadTimeout|ProxyError'
        r'|SSLError|Connection (?:reset|aborted|broken)|Network is unreachable',
        'pip could not reach the package index: check the network, then run this again',
    ),
    (
        r'No matching distribution found for (\S+)',
        'the package index has no {0} for this Python and machine',
    ),
)

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
    """A set-up that cannot go on: one sentence for the user, and the output that led to it."""

    def __init__(self, sentence: str, output: list[str] | None = None) -> None:
        super().__init__(sentence)
        self.output = output or []


class Screen:
    """Prints lines; on a terminal, :meth:`status` rewrites the last one."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.rewrites = stream.isatty()

    def line(self, text: str) -> None:
        """Print a line that stays."""
        self._write(text + '\n')

    def status(self, text: str) -> None:
        """Show what happens right now; only a terminal can, elsewhere it is dropped."""
        if self.rewrites:
            self._write(text[: shutil.get_terminal_size().columns - 1])

    def _write(self, text: str) -> None:
        self.stream.write(('\r\x1b[K' if self.rewrites else '') + text)
        self.stream.flush()


def duration(seconds: float) -> str:
    """Word a time span: '45 s', '2 min 05 s'."""
    minutes, rest = divmod(round(seconds), 60)
    return f'{minutes} min {rest:02d} s' if minutes else f'{rest} s'


def parse_ninja(line: str) -> tuple[int, int] | None:
    """Return (done, total) of a ninja line such as ``[12/78] c++ -MMD ...``."""
    match = re.match(r'\s*\[(\d+)/(\d+)\] ', line)
    return (int(match[1]), int(match[2])) if match else None


def progress_text(done: int, total: int, elapsed: float) -> str:
    """Word the progress of a compile and estimate what remains."""
    remaining = elapsed / done * (total - done)
    left = f'about {math.ceil(remaining / 60)} min' if remaining >= 60 else 'less than a minute'
    text = f'   mmcv: {done} of {total} files, {duration(elapsed)} so far'
    return text + (f', {left} left' if done < total else '')


def compile_jobs() -> int:
    """Return how many files are compiled at a time: MAX_JOBS, or the cores we may use."""
    wish = os.environ.get('MAX_JOBS', '')
    if wish.isdigit() and int(wish):
        return int(wish)
    if hasattr(os, 'sched_getaffinity'):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def require_compiler() -> None:
    """Fail unless a C++ compiler and Python's headers are there to compile mmcv."""
    compiler = (os.environ.get('CXX') or 'c++').split()[0]
    headers = Path(sysconfig.get_path('include'), 'Python.h').is_file()
    missing = "Python's headers (Python.h)" if not headers else ''
    if not shutil.which(compiler):
        missing = f'a C++ compiler ({compiler})'
    if missing:
        raise SetupError(
            f'mmcv has no ready wheel here and must be compiled, but {missing} cannot be found'
            ' (Debian, Ubuntu: apt install g++ python3-dev); install it and run this again'
        )


class PipWatch:
    """Turns pip's output into a few lines: a ready wheel taken, or the progress of a compile."""

    def __init__(
        self, stack: Stack, screen: Screen, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.stack = stack
        self.screen = screen
        self.clock = clock
        self.started: float | None = None
        source = stack.mmcv.replace('-', '[-_]') + r'-\d[^\s/]*'
        fetched = r'(?:Downloading|Using cached|Processing) (?:\S*/)?'
        self.sdist = re.compile(fetched + source + r'\.(?:tar\.gz|zip)\b')
        self.wheel = re.compile(fetched + f'({source}' + r'\.whl)\b')
        self.building = re.compile(rf'Building wheel for {stack.mmcv} ')
        self.built = re.compile(rf'Created wheel for {stack.mmcv}:')

    def __call__(self, line: str) -> None:
        """Take one line of pip's output."""
        if self.started is not None:
            self._compiling(line)
        elif self.building.search(line):
            self._announce()
        elif self.sdist.search(line):
            require_compiler()
        elif match := self.wheel.search(line):
            self.screen.line(f'   mmcv: taking the ready wheel {match[1]}, nothing to compile')
        elif re.match(r'\s*(Collecting|Downloading|Installing collected) ', line):
            self.screen.status('   ' + line.strip())

    def _announce(self) -> None:
        require_compiler()
        self.started = self.clock()
        jobs = compile_jobs()
        minutes = math.ceil(self.stack.core_minutes / jobs)
        self.screen.line(
            f'   mmcv has no ready wheel that fits here: compiling {self.stack.cpp_files} files,'
            f' about {minutes} minutes on {jobs} core{"s" if jobs > 1 else ""};'
            ' this happens once'
        )

    def _compiling(self, line: str) -> None:
        elapsed = self.clock() - self.started
        step = parse_ninja(line)
        if step:
            text = progress_text(*step, elapsed)
            if self.screen.rewrites:
                self.screen.status(text)
            elif step[0] % 5 == 0 or step[0] == step[1]:
                self.screen.line(text)
        elif self.built.search(line):
            self.screen.line(f'   mmcv: compiled in {duration(elapsed)}')
            self.started = None


def explain(output: list[str], otherwise: str) -> str:
    """Return the sentence for a failed command's output."""
    text = '\n'.join(output)
    for pattern, sentence in CAUSES:
        match = re.search(pattern, text, re.IGNORECASE)
        if match:
            return sentence.format(*match.groups())
    return otherwise


class Setup:
    """The set-up of one stack's environment, with everything that is run logged."""

    def __init__(self, stack: Stack, screen: Screen, log: TextIO) -> None:
        self.stack = stack
        self.screen = screen
        self.log = log
        self.python = ROOT / stack.venv / 'bin' / 'python'

    def run(
        self, command: list[str], otherwise: str, watch: Callable[[str], None] | None = None
    ) -> None:
        """Run a command with its output in the log; raise :class:`SetupError` if it fails."""
        self.log.write('$ ' + ' '.join(command) + '\n')
        # cc1plus can write a thousand lines of warnings after the error that counts
        output = deque(maxlen=2000)
        try:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=command_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding='utf-8',
                errors='replace',
            )
        except OSError as error:
            raise SetupError(f'{otherwise}: {error}') from error
        try:
            for line in process.stdout:
                self.log.write(line)
                output.append(line.rstrip())
                if watch:
                    watch(line)
            code = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
        if code:
            if code < 0:
                output.append(f'(ended by signal {-code})')
            raise SetupError(explain(list(output), otherwise), list(output))

    def pip(self, *arguments: str) -> None:
        """Run ``pip install -v`` in the environment."""
        command = [str(self.python), '-m', 'pip', 'install', '-v', '--progress-bar', 'off']
        watch = PipWatch(self.stack, self.screen)
        self.run([*command, *arguments], 'pip could not install the packages', watch)

    def create_venv(self) -> None:
        """Create the virtual environment, or keep the one that is there if its pip works."""
        pip_works = [str(self.python), '-m', 'pip', '--version']
        if self.python.exists() and subprocess.run(pip_works, capture_output=True).returncode == 0:
            return
        for module in ('venv', 'ensurepip'):
            if importlib.util.find_spec(module) is None:
                raise SetupError(
                    f'{sys.executable} lacks the module {module} (Debian, Ubuntu: apt install'
                    f' python3.{sys.version_info[1]}-venv); install it and run this again'
                )
        venv = self.python.parents[1]
        otherwise = f'could not create {self.stack.venv}: remove that folder and run this again'
        self.run([sys.executable, '-m', 'venv', str(venv)], otherwise)

    def read_extras(self) -> dict[str, list[str]]:
        """Read the extras of pyproject.toml, with the environment's Python and pip."""
        command = [str(self.python), '-c', READ_EXTRAS]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if result.returncode:
            raise SetupError('could not read pyproject.toml', result.stderr.splitlines())
        return json.loads(result.stdout)

    def install(self, extras: dict[str, list[str]]) -> None:
        """Install torch and the build tools, then the toolboxes and this package."""
        self.screen.line('1/3 PyTorch, NumPy and build tools (a large download)')
        needed_to_build = re.compile(r'(?:torch|numpy|setuptools)==')
        self.pip(*filter(needed_to_build.match, extras[self.stack.name]), *extras['build'])
        self.screen.line('2/3 the OpenMMLab toolboxes, demo and test tools, and this package')
        self.pip('--no-build-isolation', '-e', f'.[{self.stack.name},demo,dev]')

    def verify(self, extras: dict[str, list[str]]) -> None:
        """Import the toolboxes; mend once each what is known to fail on some machines."""
        self.screen.line('3/3 checking that mmcv.ops, mmdet and mmseg import')
        code = 'import mmcv.ops, mmdet, mmseg'
        mends = {
            r'lib(?:GL|gthread-2\.0|glib-2\.0)\.so': self.take_headless_opencv,
            r'mmcv[./]_ext|ext_loader|ended by signal': self.rebuild_mmcv,
        }
        while True:
            try:
                self.run([str(self.python), '-c', code], f"installed, but '{code}' fails")
                return
            except SetupError as error:
                output = '\n'.join(error.output)
                fault = next((pattern for pattern in mends if re.search(pattern, output)), None)
                if fault is None:
                    raise
                mends.pop(fault)(extras)

    def take_headless_opencv(self, extras: dict[str, list[str]]) -> None:
        """Put OpenCV's build without windows over the one that mmengine asks for."""
        self.screen.line('   this machine lacks libGL: taking the headless build of OpenCV')
        (pin,) = (pin for pin in extras[self.stack.name] if pin.startswith('opencv-python=='))
        headless = pin.replace('opencv-python', 'opencv-python-headless')
        self.pip('--force-reinstall', '--no-deps', headless)

    def rebuild_mmcv(self, extras: dict[str, list[str]]) -> None:
        """Compile mmcv although a ready wheel is there: its compiled part does not fit."""
        self.screen.line('   the ready mmcv does not fit this PyTorch: building it again')
        (pin,) = (pin for pin in extras[self.stack.name] if pin.startswith(self.stack.mmcv + '=='))
        fresh = ['--no-cache-dir', '--force-reinstall', '--no-deps', '--no-build-isolation']
        self.pip(*fresh, '--no-binary', self.stack.mmcv, pin)


def command_environment() -> dict[str, str]:
    """Return the variables for pip and the compiler; English messages, for CAUSES."""
    return {
        **os.environ,
        'MMCV_WITH_OPS': '1',
        'MAX_JOBS': str(compile_jobs()),
        'PYTHONUNBUFFERED': '1',
        'PIP_DISABLE_PIP_VERSION_CHECK': '1',
        'LC_ALL': 'C.UTF-8',
    }


def stamp_text(stack: Stack) -> str:
    """Return what a finished environment's stamp must say.

    The folder counts too: a checkout that was moved must be installed again.
    """
    parts = (stack.name.encode(), os.fsencode(ROOT), (ROOT / 'pyproject.toml').read_bytes())
    return hashlib.sha256(b'\0'.join(parts)).hexdigest() + '\n'


def is_complete(stack: Stack) -> bool:
    """Tell whether the stack's environment was set up in full from the present pyproject.toml."""
    stamp = ROOT / stack.venv / '.complete'
    python = ROOT / stack.venv / 'bin' / 'python'
    return python.exists() and stamp.is_file() and stamp.read_text() == stamp_text(stack)


def check_python(version: tuple[int, ...]) -> None:
    """Fail on a Python that the pinned versions have no wheels for."""
    if not (3, 10) <= version[:2] <= (3, 13):
        raise SetupError(
            f'Python 3.10 to 3.13 is needed, {sys.executable} is {version[0]}.{version[1]};'
            ' choose another one, e.g. make env PYTHON=python3.11'
        )


def set_up(stack: Stack, screen: Screen) -> None:
    """Bring the stack's environment to completion."""
    check_python(sys.version_info)
    if is_complete(stack):
        screen.line(f'{stack.venv} is complete')
        return
    started = time.monotonic()
    stamp = ROOT / stack.venv / '.complete'
    stamp.parent.mkdir(exist_ok=True)
    if stamp.exists():
        stamp.unlink()
    screen.line(f'setting up {stack.venv} (details in {stack.venv}/setup.log)')
    # line by line, so that the log can be followed
    with open(stamp.with_name('setup.log'), 'w', encoding='utf-8', buffering=1) as log:
        setup = Setup(stack, screen, log)
        setup.create_venv()
        extras = setup.read_extras()
        setup.install(extras)
        setup.verify(extras)
    stamp.write_text(stamp_text(stack))
    screen.line(f'{stack.venv} is complete, after {duration(time.monotonic() - started)}')


def report(stack: Stack, error: SetupError, screen: Screen) -> None:
    """Show the end of a failed command's output, where the log is, and the cause."""
    lines = [line for line in error.output if not line.startswith('WARNING: Location ')]
    if lines:
        screen.line(f'--- the last lines of {stack.venv}/setup.log:')
        for line in lines[-20:]:
            screen.line(line[:300])
        screen.line(f'--- all of it: {stack.venv}/setup.log')
    screen.line(f'set-up failed: {error}')


def main() -> int:
    """Set up the stack named on the command line; return the exit status."""
    parser = argparse.ArgumentParser(description='create the virtual environment of one stack')
    parser.add_argument('stack', choices=STACKS)
    stack = STACKS[parser.parse_args().stack]
    screen = Screen(sys.stdout)
    try:
        set_up(stack, screen)
        return 0
    except SetupError as error:
        report(stack, error, screen)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        report(stack, SetupError(DISK_FULL if full else str(error)), screen)
    except KeyboardInterrupt:
        screen.line('interrupted; run this again to continue')
    return 1


if __name__ == '__main__':
    sys.exit(main())
