"""A locked folder is refused to others, and free again afterwards."""

from pathlib import Path

import pytest

from sn_openmmlab.errors import UsageError
from studies.experiments.lock import locked


def test_one_at_a_time(tmp_path: Path) -> None:
    refused = pytest.raises(UsageError, match='is in use by another command')
    with locked(tmp_path), refused, locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


def test_lock_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / 'lock').mkdir()
    with pytest.raises(UsageError, match=r'cannot be locked: .*directory'), locked(tmp_path):
        pass
