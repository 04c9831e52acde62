"""What a process uses is what it was told to use."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

pytest.importorskip('psutil')
from studies.benchmarks.process_usage import usage

# Holds 60 MB in itself and 30 MB in a child, 20 files, one thread more, and spends a second.
PROCESS = """
import os, sys, threading, time
block = os.urandom(1 << 20) * 60
files = [open(os.devnull) for _ in range(20)]
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
if os.fork() == 0:
    other = os.urandom(1 << 20) * 30
    time.sleep(60)
while time.process_time() < 1:
    pass
time.sleep(0.5)
print('ready', flush=True)
time.sleep(60)
"""


@pytest.fixture
def process() -> Iterator[subprocess.Popen]:
    started = subprocess.Popen(
        [sys.executable, '-c', PROCESS], stdout=subprocess.PIPE, start_new_session=True
    )
    assert started.stdout.readline() == b'ready\n'
    yield started
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()


def test_a_process_and_its_child(process: subprocess.Popen) -> None:
    used = usage(process.pid)
    assert 90e6 < used.pss < 150e6
    assert 60e6 < used.rss < 120e6
    # Both have the files, stdin, stdout and stderr.
    assert 46 <= used.files <= 56
    assert used.threads == 3
    # Linux counts in hundredths of a second, and rounds each part down.
    assert 0.9 < used.cpu < 3


def test_a_process_that_has_ended() -> None:
    ended = subprocess.Popen([sys.executable, '-c', ''])
    ended.wait()
    assert usage(ended.pid) is None
