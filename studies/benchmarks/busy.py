"""Times of training steps in different environments, alone and on busy cores."""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress

STEPS_PER_TURN = 2
_NOTHING_BUT_WORK = 'while True: pass'


def time_steps(
    command: Sequence[str],
    environments: Mapping[str, Mapping[str, str]],
    *,
    rounds: int,
    seconds: float,
    beside: int,
) -> dict[str, dict[str, list[float]]]:
    """Return the milliseconds of all steps, by place (``'alone'``, ``'beside'``) and environment.

    There is one process per environment. Each takes a step to warm up; then they take turns of
    `STEPS_PER_TURN` steps, and the others wait.

    Args:
        command: starts a process that answers as `studies.benchmarks.stepper` does.
        environments: the variables of each process, by a name.
        rounds: the number of rounds in each place.
        seconds: after this time, no other round starts in a place.
        beside: the number of single-threaded processes that compete for the cores in `'beside'`.

    Raises:
        RuntimeError: a process ended.
    """
    with ExitStack() as stack:
        steppers = {
            name: stack.enter_context(_started(command, env)) for name, env in environments.items()
        }
        for stepper in steppers.values():
            _read_time(stepper)
        times = {'alone': _take_turns(steppers, rounds, seconds)}
        for _ in range(beside):
            stack.enter_context(_started([sys.executable, '-c', _NOTHING_BUT_WORK], None))
        return {**times, 'beside': _take_turns(steppers, rounds, seconds)}


def _take_turns(
    steppers: Mapping[str, subprocess.Popen], rounds: int, seconds: float
) -> dict[str, list[float]]:
    times = {name: [] for name in steppers}
    end = time.monotonic() + seconds
    for round_ in range(rounds):
        if round_ and time.monotonic() > end:
            break
        for name, stepper in steppers.items():
            for _ in range(STEPS_PER_TURN):
                times[name].append(_step(stepper))
    return times


def _step(stepper: subprocess.Popen) -> float:
    # If the process has ended, reading says so.
    with suppress(BrokenPipeError):
        stepper.stdin.write('\n')
        stepper.stdin.flush()
    return _read_time(stepper)


def _read_time(stepper: subprocess.Popen) -> float:
    line = stepper.stdout.readline()
    if not line:
        raise RuntimeError(f'the process that takes steps ended: {stepper.args}')
    return float(line)


@contextmanager
def _started(command: Sequence[str], env: Mapping[str, str] | None) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen(
        command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        # It writes what is left in its buffer.
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
