"""Processes take turns, and one of them takes training steps."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from studies.benchmarks.busy import STEPS_PER_TURN, time_steps
from studies.presentation.benchmark_tables import busy_table

# Answers with which of all answers this is, and leaves a note of it.
STEPPER = """
import os, sys
for k in range(100):
    with open(os.environ['NOTES'], 'a') as notes:
        notes.write(os.environ['NAME'])
    print(k * int(os.environ['SCALE']), flush=True)
    if not sys.stdin.readline():
        break
"""


@pytest.fixture
def environments(tmp_path):
    scales = {'a': '1', 'b': '10'}
    return {
        name: {**os.environ, 'NOTES': str(tmp_path / 'notes'), 'NAME': name, 'SCALE': scale}
        for name, scale in scales.items()
    }


def _time(environments, **settings):
    settings = {'rounds': 2, 'seconds': 60, 'beside': 1, **settings}
    return time_steps([sys.executable, '-c', STEPPER], environments, **settings)


def test_processes_take_turns_and_their_first_step_does_not_count(environments, tmp_path):
    times = _time(environments)
    steps = 2 * STEPS_PER_TURN
    assert times == {
        'alone': {'a': [*range(1, steps + 1)], 'b': [*range(10, 10 * steps + 1, 10)]},
        'beside': {
            'a': [*range(steps + 1, 2 * steps + 1)],
            'b': [*range(10 * steps + 10, 20 * steps + 1, 10)],
        },
    }
    notes = (tmp_path / 'notes').read_text()
    assert notes[2:] == ('a' * STEPS_PER_TURN + 'b' * STEPS_PER_TURN) * 4


def test_only_the_first_round_starts_after_the_time_limit(environments):
    times = _time(environments, rounds=50, seconds=0)
    assert {len(t) for place in times.values() for t in place.values()} == {STEPS_PER_TURN}


# The second closes its input before it answers, so that the pipe is broken for certain.
@pytest.mark.parametrize('code', ['print(1)', 'import os; os.close(0); print(1)'])
def test_process_that_ends_is_an_error(code, environments):
    with pytest.raises(RuntimeError, match='takes steps ended'):
        time_steps([sys.executable, '-c', code], environments, rounds=1, seconds=1, beside=0)


def test_the_stepper_answers_with_the_milliseconds_of_each_step(repo, tool_env):
    pytest.importorskip('mmdet')
    config = repo / 'configs/_base_/faster-rcnn_r18_fpn_sn-all_scratch.py'
    done = subprocess.run(
        [sys.executable, '-m', 'studies.benchmarks.stepper', config, '64', '64', '1'],
        input='\n',
        env=tool_env,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    first, second = map(float, done.stdout.split())
    assert first > 1 and second > 1


def test_page_shows_the_table_of_the_record(repo: Path) -> None:
    record = json.loads((repo / 'docs/speed/busy.json').read_text())
    assert busy_table(record) in (repo / 'docs/results/speed.md').read_text()
