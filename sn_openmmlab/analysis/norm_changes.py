"""What became of the norm layers of a model whose norms were replaced, as a table."""

from collections import Counter
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table
from torch import nn

from sn_openmmlab.analysis.norms import part_of


class NormChange(NamedTuple):
    """A norm layer and what became of it.

    Attributes:
        name: its path in the model.
        before: its kind before, as `'BN'` or `'GN'`.
        after: its kind now; the same as before if it stays.
        reason: why it stays; `''` if it was replaced.
    """

    name: str
    before: str
    after: str
    reason: str = ''


def norm_changes(model: nn.Module) -> Sequence[NormChange]:
    """Return what `WithNorm` noted on a bare model when it built it; nothing for other models."""
    return getattr(model, 'norm_changes', ())


def changes_table(changes: Iterable[NormChange]) -> str:
    """Return a table of the changes as text, one row for each part and kind."""
    rows = Counter((part_of(c.name), c.before, c.after, c.reason) for c in changes)
    table = Table('part', 'norm', 'layers', 'becomes', box=box.SIMPLE_HEAD)
    for (part, before, after, reason), number in rows.items():
        table.add_row(part, before, str(number), f'stays: {reason}' if reason else after)
    text = StringIO()
    Console(file=text, width=100, color_system=None).print(table)
    return '\n'.join(line.rstrip() for line in text.getvalue().strip('\n').split('\n'))
