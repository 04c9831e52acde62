"""Remark 1, measured: its tables and its figure."""

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from sn_openmmlab.analysis.colors import LINES
from studies.experiments.geometry import Assumption, Gamma, Length
from studies.presentation.markdown import table

# The directions of the paper's figure do not matter; w_1 is short and w_2 is long.
_DIRECTIONS = {0.5: (0.34, 0.94), 2.0: (0.96, 0.28)}


def all_tables(
    lengths: Sequence[Length], gammas: Sequence[Gamma], assumptions: Sequence[Assumption]
) -> str:
    """Return every table as a Markdown page."""
    parts = [
        '# Remark 1, measured',
        '## The length of filters after each norm, γ = 1',
        table(
            lengths,
            ['norm', 'w′ of `ln`', '‖w‖ before'],
            lambda row: (row.norm, f'{row.share:.3f}', f'{row.before:.1f}'),
            {
                'measured': _shown('measured'),
                'Eq. 3': _shown('exact'),
                'Remark 1': _shown('paper'),
                'its sum of outputs': _shown('paper_sum'),
            },
        ),
        '## The best γ of BN over the best v of WN',
        table(
            gammas,
            ['values per batch'],
            lambda row: (str(row.batch),),
            {'measured': _shown('measured'), 'expected': _shown('exact')},
        ),
        '## The lengths on other patches, γ = 1',
        table(
            assumptions,
            ['patches'],
            lambda row: (row.patches,),
            {'after IN': _span('instance'), 'after BN': _span('batch')},
        ),
    ]
    return '\n\n'.join(parts)


def draw_geometry(lengths: Sequence[Length], gammas: Sequence[Gamma], file: Path) -> None:
    """Draw two filters after each norm, their lengths over LN's share, and γ over the batch."""
    figure = Figure(figsize=(12, 4), layout='constrained')
    arrows, shares, batches = figure.subplots(1, 3)
    _draw_arrows(arrows, lengths, gammas)
    _draw_shares(shares, [row for row in lengths if row.norm == 'SN'])
    _draw_gammas(batches, gammas)
    figure.savefig(file, dpi=100)


def _draw_arrows(axes: Axes, lengths: Sequence[Length], gammas: Sequence[Gamma]) -> None:
    """Draw the paper's figure with measured lengths; BN with its γ for four values per batch."""
    gamma = next(row.measured for row in gammas if row.batch == 4)
    norms = {'IN': 1.0, 'BN': gamma, 'LN': 1.0}
    axes.add_patch(Circle((0, 0), 1, fill=False, color='grey', linestyle=':'))
    for (norm, scale), color, offset in zip(norms.items(), LINES, (0, 0.05, -0.05), strict=False):
        for before, (x, y) in _DIRECTIONS.items():
            row = next(r for r in lengths if r.norm == norm and r.before == before)
            length = scale * row.measured
            axes.annotate(
                '',
                (length * x - offset * y, length * y + offset * x),
                (-offset * y, offset * x),
                arrowprops=dict(color=color, arrowstyle='-|>', linewidth=2, shrinkA=0, shrinkB=0),
            )
        axes.plot([], [], color=color, linewidth=2, label=norm)
    for name, (before, (x, y)) in zip(('$w_1$', '$w_2$'), _DIRECTIONS.items(), strict=True):
        axes.text(1.15 * x - 0.12 * (before < 1), 1.15 * y + 0.08 * (before > 1), name)
    axes.set(xlim=(-0.15, 1.7), ylim=(-0.15, 1.3), aspect='equal', title='filters after each norm')
    axes.legend(loc='upper right')


def _draw_shares(axes: Axes, rows: Sequence[Length]) -> None:
    for before, color in zip(sorted({row.before for row in rows}), LINES, strict=False):
        own = [row for row in rows if row.before == before]
        x = [row.share for row in own]
        label = f'‖w‖ = {before:g}'
        axes.plot(x, [row.measured for row in own], 'o', color=color, label=label)
        axes.plot(x, [row.exact for row in own], color=color)
        axes.plot(x, [row.paper for row in own], '--', color=color)
    axes.plot([], [], 'k-', label='Eq. 3')
    axes.plot([], [], 'k--', label='Remark 1')
    axes.set(xlabel='share of LN in the variance', ylabel='length after SN', ylim=(0, None))
    axes.set_title('points: measured with the layer')
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def _draw_gammas(axes: Axes, gammas: Sequence[Gamma]) -> None:
    batches = [row.batch for row in gammas]
    axes.plot(batches, [row.exact for row in gammas], color=LINES[1], label='expected')
    axes.plot(batches, [row.measured for row in gammas], 'o', color=LINES[1], label='measured')
    axes.axhline(1, color='grey', linestyle=':', label='v of WN')
    axes.set_xscale('log', base=2)
    axes.set_xticks(batches, map(str, batches))
    axes.set(xlabel='values per batch', ylabel='best γ of BN', ylim=(0.5, 1.05))
    axes.set_title('BN shortens its filters')
    axes.grid(alpha=0.3)
    axes.legend()


def _shown(attribute: str) -> Callable[[list], str]:
    return lambda rows: f'{getattr(rows[0], attribute):.3f}'


def _span(attribute: str) -> Callable[[list], str]:
    return lambda rows: ' to '.join(f'{length:.2f}' for length in getattr(rows[0], attribute))
