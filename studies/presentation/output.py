"""The folder that a study writes to, and its data files."""

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from sn_openmmlab.errors import UsageError


def make_folder(folder: Path) -> None:
    """Make a folder and its parents if they are missing.

    Raises:
        UsageError: it cannot be made, or no file can be written into it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(f'{folder} cannot be written to ({error}): name another.') from error


def write_data(data: Mapping[str, Any], file: Path) -> None:
    """Write a data file as JSON."""
    file.write_text(json.dumps(data, indent=1) + '\n')


def write_rows(data: Mapping[str, Any], rows: str, file: Path) -> None:
    """Write a data file as JSON, with a line for each item of the list called `rows`.

    The file is whole at any time: the old one is replaced at once.
    """
    head = {name: value for name, value in data.items() if name != rows}
    lines = ',\n'.join(json.dumps(row) for row in data[rows])
    half = file.with_name(f'{file.name}.half')
    half.write_text(f'{json.dumps(head)[:-1]}, "{rows}": [\n{lines}\n]}}\n')
    half.replace(file)
