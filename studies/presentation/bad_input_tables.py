"""The tables of what our tools make of mistakes."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from studies.presentation.markdown import group_by

Record = dict[str, Any]
_TASKS = {'box': 'boxes', 'mask': 'masks', 'map': 'label maps', 'class': 'classes'}


def bad_input_tables(records: Sequence[Record]) -> str:
    """Return a page with how many mistakes end in which way, and a table of all of them.

    Args:
        records: dicts with ``part`` (the title of the table), ``task``, ``tool``, ``change``,
            ``ends``, ``code``, ``said`` (a list of sentences) and ``note``.
    """
    parts = group_by(records, lambda record: record['part'])
    sections = [f'## {title}\n\n{_table(group)}' for title, group in parts.items()]
    head = '# Mistakes\n\nFrom outcomes.json beside this file, by `python -m studies.bad_inputs`.'
    return '\n\n'.join([head, count_table(records), *sections]) + '\n'


def count_table(records: Sequence[Record]) -> str:
    """Return how many mistakes of each part end in which way."""
    rows = [
        [title, *_counts(group)]
        for title, group in group_by(records, lambda record: record['part']).items()
    ]
    header = ['mistakes in', 'all', 'a sentence, exit code 2', 'go on with a warning', 'go on']
    return _lines([header, ['---'] * len(header), *rows, ['**all**', *_counts(records)]])


def _counts(records: Sequence[Record]) -> list[str]:
    found = Counter(_way(record) for record in records)
    return [str(n) for n in (len(records), found['sentence'], found['warning'], found['silent'])]


def _way(record: Record) -> str:
    if record['code']:
        return 'sentence' if record['ends'] == 'sentence' else 'bad'
    return 'warning' if record['said'] else 'silent'


def _table(records: Sequence[Record]) -> str:
    header = ['data', 'changed', 'outcome', 'exit code', 'what the tool says']
    rows = [
        [
            _TASKS[record['task']],
            record['change'] + (' (test)' if record['tool'] == 'test.py' else ''),
            record['ends'],
            str(record['code']),
            ' '.join(map(_text, record['said'])) or f'nothing: {record["note"]}',
        ]
        for record in records
    ]
    return _lines([header, ['---'] * len(header), *rows])


def _text(said: str) -> str:
    """Return a sentence that Markdown shows as it is."""
    for mark in ('\\', '*', '_', '<', '[', '`'):
        said = said.replace(mark, f'\\{mark}')
    return said


def _lines(rows: Sequence[Sequence[str]]) -> str:
    return '\n'.join(
        f'| {" | ".join(cell.replace("|", chr(92) + "|") for cell in row)} |' for row in rows
    )
