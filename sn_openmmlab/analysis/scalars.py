"""The scalars that mmengine's visualizer logged in a training."""

import json
from pathlib import Path
from typing import Any

from sn_openmmlab.errors import UsageError


def read_scalars(file: str | Path) -> list[dict[str, Any]]:
    """Return the entries of a `vis_data/scalars.json`, each with its `'step'`.

    Raises:
        UsageError: the file cannot be read, or has a line that is no entry, such as one that a
            killed training cut short.
    """
    try:
        lines = Path(file).read_text(encoding='utf-8').splitlines()
    except OSError as error:
        raise UsageError(f'{file} cannot be read: {error.strerror}.') from error
    except UnicodeDecodeError as error:
        raise UsageError(f'{file} is damaged: it is not text. Remove it.') from error
    entries = []
    for number, line in enumerate(lines, 1):
        if not _is_entry(entry := _parsed(line)):
            raise UsageError(
                f'{file} is damaged: its line {number} is cut short, or nothing that mmengine '
                'logs. Remove that line.'
            )
        entries.append(entry)
    return entries


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get('step'), int)
