"""The import benchmark measures what it says, and the page shows what it found."""

import json
import os
from pathlib import Path

import pytest

from studies.benchmarks import imports
from studies.presentation.benchmark_tables import import_table


@pytest.mark.skipif(not hasattr(os, 'wait4'), reason='no CPU time of a process here')
def test_it_takes_the_time_of_each_process(
    tool_env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    work = 'import time\nwhile time.process_time() < 0.5: pass'
    monkeypatch.setattr(imports, 'CASES', {'a': '', 'b': ''})
    monkeypatch.setattr(imports, 'WITH', {'alone': 'pass', 'with': work})
    seconds = imports.time_imports(2, tool_env)
    assert {name: list(times) for name, times in seconds.items()} == {
        'a': ['alone', 'with'],
        'b': ['alone', 'with'],
    }
    for times in seconds.values():
        assert [len(t) for t in times.values()] == [2, 2]
        assert min(times['with']) >= 0.5 > max(times['alone'])


def test_process_that_fails_is_an_error(
    tool_env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, 'CASES', {'a': 'import sys; sys.exit(3); '})
    with pytest.raises(RuntimeError, match='that imports the package failed'):
        imports.time_imports(1, tool_env)


def test_page_shows_what_was_measured(repo: Path) -> None:
    data = json.loads((repo / 'docs/speed/import.json').read_text())
    assert import_table(data) in (repo / 'docs/results/speed.md').read_text()
