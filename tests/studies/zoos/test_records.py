"""The records of a run are lines of a file, each written at once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from studies.zoos.records import Record, append_records, read_records, read_runs, run_file


def test_records_are_kept_when_a_run_breaks_off(tmp_path: Path) -> None:
    file = run_file(tmp_path, 'onedl', 'mmseg')
    assert read_records(file) == []

    def broken() -> Iterator[Record]:
        yield {'config': 'a.py'}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(append_records(broken(), file))
    list(append_records(iter([{'config': 'b.py'}]), file))
    assert [record['config'] for record in read_records(file)] == ['a.py', 'b.py']
    assert all(record['cpu_seconds'] >= 0 for record in read_records(file))
    (run,) = read_runs(tmp_path)
    assert (run.stack, run.part, run.records) == ('onedl', 'mmseg', read_records(file))
