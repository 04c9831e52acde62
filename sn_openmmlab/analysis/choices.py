"""Which scopes the layers of a sparse network chose, as tables."""

from collections import Counter
from collections.abc import Sequence
from io import StringIO
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from sn_openmmlab.analysis.importance import LayerRatios
from sn_openmmlab.analysis.norms import bare_name, part_of
from sn_openmmlab.layers.switch_norm import SwitchNorm

# Wide enough for a line of any model; rich would fold it.
_WIDTH = 400


class ScopeChoice(NamedTuple):
    """What a sparse layer chose.

    Attributes:
        name: the path of the layer in the model.
        means: the scope of its means; with groups of ratios, that of each group.
        variances: the scope of its variances, likewise.
    """

    name: str
    means: tuple[str, ...]
    variances: tuple[str, ...]


def scope_choices(model: nn.Module) -> list[ScopeChoice]:
    """Return the choice of every sparse SN layer, in the order of the modules."""
    return [
        ScopeChoice(
            bare_name(name), _named(layer, layer.mean_choice), _named(layer, layer.var_choice)
        )
        for name, layer in model.named_modules()
        if isinstance(layer, SwitchNorm) and layer.is_sparse
    ]


def summary_table(choices: Sequence[ScopeChoice]) -> str:
    """Return a table as text that counts the layers by part, scope of means and of variances."""
    rows = Counter((part_of(c.name), _joined(c.means), _joined(c.variances)) for c in choices)
    table = Table('part', 'means', 'variances', 'layers', box=box.SIMPLE_HEAD)
    for (part, means, variances), number in rows.items():
        table.add_row(part, means, variances, str(number))
    return as_text(table)


def ratio_table(before: Sequence[LayerRatios], after: Sequence[LayerRatios]) -> str:
    """Return a table as text with the choice of each layer and the ratios that it had before.

    Args:
        before: the ratios of the dense network.
        after: those of the sparse one, in the same order.
    """
    headings = ('layer', 'means', 'ratios before', 'variances', 'ratios before')
    table = Table(*headings, box=box.SIMPLE_HEAD)
    for was, now in zip(before, after, strict=True):
        table.add_row(
            now.name,
            now.scopes[now.mean.index(1)],
            _ratios(was.scopes, was.mean),
            now.scopes[now.var.index(1)],
            _ratios(was.scopes, was.var),
        )
    return as_text(table)


def as_text(table: Table) -> str:
    """Return a table of rich without colours, and without folding its cells."""
    text = StringIO()
    Console(file=text, width=_WIDTH, color_system=None).print(table)
    return '\n'.join(line.rstrip() for line in text.getvalue().strip().split('\n'))


def _ratios(scopes: Sequence[str], ratios: Sequence[float]) -> str:
    return ', '.join(f'{scope} {ratio:.2f}' for scope, ratio in zip(scopes, ratios, strict=True))


def _named(layer: SwitchNorm, choice: Tensor) -> tuple[str, ...]:
    return tuple(layer.scopes[k] for k in choice.tolist())


def _joined(scopes: tuple[str, ...]) -> str:
    return ' '.join(scopes)
