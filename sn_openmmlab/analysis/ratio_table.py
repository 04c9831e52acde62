"""The importance ratios of one or several networks as one table, written as CSV or JSON."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import NamedTuple

from sn_openmmlab.analysis.importance import LayerRatios

Networks = Mapping[str, Sequence[LayerRatios]]
"""The ratios of networks by the label of each, in the order in which they are shown."""


class TableRow(NamedTuple):
    """One scope of one layer: a line of the table, whose columns have these names."""

    run: str
    layer: str
    part: str
    depth: int | None
    stride: int | None
    conv: str
    scope: str
    mean_ratio: float
    var_ratio: float


def table_rows(networks: Networks) -> Iterator[TableRow]:
    """Yield the lines of the table: one per network, layer and scope, ratios to six digits."""
    for run, layers in networks.items():
        for layer in layers:
            conv, depth, stride = layer.place
            for scope, mean, var in zip(layer.scopes, layer.mean, layer.var, strict=True):
                place = (layer.name, layer.part, depth, stride, conv)
                yield TableRow(run, *place, scope, round(mean, 6), round(var, 6))


def csv_table(networks: Networks) -> str:
    """Return the table as CSV with a head; what is not known is empty."""
    text = StringIO()
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow(TableRow._fields)
    for *names, mean, var in table_rows(networks):
        writer.writerow([*names, f'{mean:.6f}', f'{var:.6f}'])
    return text.getvalue()


def json_table(networks: Networks) -> str:
    """Return the table as a JSON list of objects, one on each line; what is not known is null."""
    lines = [json.dumps(row._asdict(), ensure_ascii=False) for row in table_rows(networks)]
    return '[\n' + ',\n'.join(lines) + '\n]\n'
