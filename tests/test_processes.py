"""A script that is forked from the warm process ends as one in a new interpreter does."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.processes import CAN_FORK, LIMIT, Job, WarmProcess, run_anew

SCRIPTS = {
    'nothing': '',
    'streams': 'import sys\nprint("out")\nprint("err", file=sys.stderr)',
    'number': 'import sys\nsys.exit(3)',
    'sentence': 'import sys\nsys.exit("why")',
    'exception': 'raise ValueError("why")',
    'at exit': 'import atexit\natexit.register(print, "last")\nprint("first")',
    'thread': (
        'import threading, time\n'
        'threading.Thread(target=lambda: (time.sleep(0.2), print("late"))).start()'
    ),
    'killed': 'import os, signal\nos.kill(os.getpid(), signal.SIGKILL)',
    'interrupted': 'import os, signal\nos.kill(os.getpid(), signal.SIGINT)',
    'left': 'import os\nprint("out", flush=True)\nos._exit(4)',
}


@pytest.fixture(scope='module')
def warm(tool_env: dict[str, str]) -> Iterator[WarmProcess]:
    """Return a warm process of this module's own."""
    process = WarmProcess(tool_env)
    yield process
    process.close()


@pytest.mark.skipif(not CAN_FORK, reason='scripts are not forked here')
@pytest.mark.parametrize('name', SCRIPTS)
def test_fork_ends_as_a_new_interpreter(
    name: str, warm: WarmProcess, tool_env: dict[str, str], tmp_path: Path
) -> None:
    script = tmp_path / 'script.py'
    script.write_text(SCRIPTS[name])

    def outcome(start: Callable[[list[Job]], list[int]], kind: str) -> tuple[int, str, str]:
        files = [str(tmp_path / f'{kind}.{stream}') for stream in ('stdout', 'stderr')]
        for file in files:
            Path(file).touch()
        stdout, stderr = files
        job = Job(
            args=[str(script)],
            cwd=str(tmp_path),
            env=tool_env,
            stdout=stdout,
            stderr=stderr,
            limit=LIMIT,
        )
        (code,) = start([job])
        # A traceback starts with the frames of who ran the script.
        *_, last = ['', *Path(stderr).read_text().splitlines()]
        return code, Path(stdout).read_text(), last

    assert outcome(warm.run, 'forked') == outcome(run_anew, 'new')
