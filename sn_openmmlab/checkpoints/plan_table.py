"""The table that shows a conversion before it is carried out."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sn_openmmlab.checkpoints.names import shown
from sn_openmmlab.checkpoints.plans.batch_norm import BatchNormPlan
from sn_openmmlab.checkpoints.plans.plan import Plan
from sn_openmmlab.checkpoints.plans.released_detector import DetectorPlan

_WIDEST = 1000


def print_table(plans: Sequence[Plan]) -> None:
    """Print both names and the shape of each weight, and what is left over."""
    table = Table()
    for heading in ('in the file', 'in the model', 'shape'):
        table.add_column(heading, overflow='fold')
    for plan in plans:
        for row in _rows(plan):
            table.add_row(*map(Text, row))
    console = Console()
    if not console.is_terminal:
        console.width = _WIDEST
        console.width = console.measure(table).maximum
    console.print(table)
    print(_summary(plans))


def _summary(plans: Sequence[Plan]) -> str:
    counts = {
        'dropped': sum(len(plan.dropped) for plan in plans),
        'of another shape': sum(len(plan.misfits) for plan in plans),
        'left over in the file': sum(len(plan.left_over) for plan in plans),
        'left over in the model': sum(len(plan.missing) for plan in plans),
    }
    fit = sum(len(plan.pairs) for plan in plans)
    return f'{fit} weights fit; ' + ', '.join(f'{n} {what}' for what, n in counts.items()) + '.'


def _rows(plan: Plan) -> Iterator[tuple[str, str, str]]:
    for source, target in plan.pairs.items():
        folded = isinstance(plan, DetectorPlan) and plan.is_folded(target)
        note = ' (bn folded into in)' if folded else ''
        yield shown(source), f'{target}{note}', str(plan.expected[target])
    if isinstance(plan, BatchNormPlan):
        for target, values in plan.controls.items():
            yield f'new: bn at {plan.batch_ratio:g}', target, str((len(values),))
    for source, shape in plan.misfits.items():
        yield shown(source), f'does not fit: {shape} in this layout', _shape(plan, source)
    yield from _left_over(plan, plan.dropped, 'dropped: no part of the model')
    yield from _left_over(plan, plan.left_over, 'left over: unknown')
    for target in plan.missing:
        yield 'left over: missing', target, str(plan.expected[target])


def _left_over(plan: Plan, names: Iterable[str], why: str) -> Iterator[tuple[str, str, str]]:
    for source in names:
        yield shown(source), why, _shape(plan, source)


def _shape(plan: Plan, source: str) -> str:
    return str(tuple(plan.weights[source].shape))
