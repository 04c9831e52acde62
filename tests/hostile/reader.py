"""Read hostile checkpoints in a process that is watched.

python -m tests.hostile.reader FOLDER EVERY

Every EVERY-th file of the corpus is written into the folder and read by a forked process. Printed
is a JSON object: the outcomes by file, and the most memory that reading took.
"""

import codecs
import json
import multiprocessing
import resource
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import torch

from sn_openmmlab.analysis.checkpoint_ratios import read_ratios
from sn_openmmlab.checkpoints.convert import converted_checkpoint, plan_files
from sn_openmmlab.checkpoints.files.safe_loading import check_resumable, read_checkpoint
from sn_openmmlab.checkpoints.files.stored_config import configured_settings
from sn_openmmlab.checkpoints.files.weights import weights_for_mmengine
from sn_openmmlab.errors import UsageError
from tests.hostile.corpus import corpus

# Beyond what the process has already; and per file.
MEMORY, SECONDS = 1 << 30, 10
# Of sys.audit: what reading a file never does.
_DEEDS = (
    'os.system', 'os.exec', 'os.posix_spawn', 'os.spawn', 'os.fork', 'os.forkpty', 'os.startfile',
    'subprocess.', 'pty.', 'socket.', 'shutil.', 'os.remove', 'os.rename', 'os.rmdir', 'os.mkdir',
    'os.symlink', 'os.link', 'os.chmod', 'os.truncate', 'exec', 'import', 'ctypes.', 'code.',
    'marshal.', 'webbrowser.', 'tempfile.', 'urllib.', 'pickle.find_class', 'builtins.input',
)  # fmt: skip


class Outcome(NamedTuple):
    """What became of a file.

    Attributes:
        end: `'read'`, `'refused'` with a sentence, or what went wrong.
        said: the sentence or the error.
        deeds: what it did besides reading.
    """

    end: str
    said: str
    deeds: list[str]


class Watch:
    """Notes what this process does while it is on; it cannot be removed."""

    def __init__(self) -> None:
        self.on = False
        self.deeds: list[str] = []
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple) -> None:
        if not self.on:
            return
        writes = (
            event == 'open' and isinstance(arguments[1], str) and set(arguments[1]) & set('wax+')
        )
        if writes or event.startswith(_DEEDS):
            self.deeds.append(f'{event} {str(arguments)[:100]}')


def read(path: str, watch: Watch) -> Outcome:
    """Read a file as the tools do, and use what it holds."""
    watch.deeds, watch.on = [], True
    try:
        checkpoint = read_checkpoint(path)
        watch.on = False
        use(checkpoint, path)
        end, said = 'read', ''
    except UsageError as error:
        end, said = 'refused', str(error)
        if _lacked_memory(error):
            end = 'took too much memory'
    except BaseException as error:
        end, said = 'raised another error', f'{type(error).__name__}: {str(error)[:300]}'
    watch.on = False
    return Outcome(end, said, watch.deeds)


def use(checkpoint: dict[str, Any], path: str) -> None:
    """Use a checkpoint as the tools do before a model gets its weights."""
    configured_settings(checkpoint)
    for step in (
        lambda: weights_for_mmengine(checkpoint),
        lambda: check_resumable(path),
        lambda: read_ratios(path),
        lambda: converted_checkpoint(plan_files([path])),
    ):
        with suppress(UsageError):
            step()


def _lacked_memory(error: BaseException | None) -> bool:
    while error:
        if isinstance(error, MemoryError) or 'allocate memory' in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _resident() -> int:
    """Return the most kilobytes that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def serve(connection: Connection) -> None:
    """Read the files whose names come in, with a limit on the memory."""
    taken = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))
    watch, start = Watch(), _resident()
    with suppress(EOFError):
        while True:
            path = connection.recv()
            outcome = read(path, watch)
            connection.send((*outcome, _resident() - start))


class Server:
    """A forked process that reads; a new one after each that ended."""

    def __init__(self) -> None:
        self.peak = 0
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context('fork')
        self._connection, other = context.Pipe()
        self._process = context.Process(target=serve, args=(other,), daemon=True)
        self._process.start()
        other.close()

    def read(self, path: str) -> Outcome:
        self._connection.send(path)
        end = 'took too long'
        with suppress(EOFError, ConnectionError):
            if self._connection.poll(SECONDS):
                *outcome, peak = self._connection.recv()
                self.peak = max(self.peak, peak)
                return Outcome(*outcome)
        self._process.kill() if end == 'took too long' else None
        self._process.join()
        code = -self._process.exitcode
        self._start()
        said = signal.Signals(code).name if code > 0 else f'exit code {-code}'
        return Outcome(end if code == signal.SIGKILL else 'crashed', said, [])


def main() -> None:
    folder, every = Path(sys.argv[1]), int(sys.argv[2])
    canary = folder / 'canary'
    files = islice(corpus(str(canary)), 0, None, every)
    outcomes: dict[str, Any] = {}
    # What the first file of each kind makes Python import is imported before the fork.
    warm_up(folder)
    server = Server()
    start = time.monotonic()
    for name, content in files:
        path = folder / 'hostile.pth'
        path.write_bytes(content)
        outcomes[name] = server.read(str(path))
        if canary.exists():
            outcomes[name] = Outcome('ran code', '', [])
            canary.unlink()
    result = {
        'outcomes': outcomes,
        'megabytes': server.peak / 1024,
        'seconds': time.monotonic() - start,
        'escaped': [str(path) for path in escaped(folder)],
    }
    print('\n' + json.dumps(result))


def warm_up(folder: Path) -> None:
    """Read a file of each format, whole and damaged."""
    # Of names in archives, and of texts in pickles.
    for encoding in ('cp437', 'latin-1', 'raw-unicode-escape'):
        codecs.lookup(encoding)
    for zip_format in (True, False):
        path = folder / 'whole.pth'
        torch.save({'a.b': torch.ones(1)}, path, _use_new_zipfile_serialization=zip_format)
        use(read_checkpoint(path), str(path))
        path.write_bytes(path.read_bytes()[:-30])
        with suppress(UsageError):
            read_checkpoint(path)
        path.unlink()


def escaped(folder: Path) -> Iterator[Path]:
    """Yield files that a name with `..` in an archive would have made."""
    for place in (folder.parent, folder.parent.parent, Path('/tmp'), Path.cwd()):
        yield from place.glob('escaped*')


if __name__ == '__main__':
    main()
