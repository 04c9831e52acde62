"""The table of ratios as CSV and JSON, against lines by hand."""

import csv
import json
from io import StringIO

import pytest

from sn_openmmlab.analysis.importance import LayerRatios
from sn_openmmlab.analysis.places import Place
from sn_openmmlab.analysis.ratio_table import csv_table, json_table

ROWS = [
    LayerRatios('backbone.sn1', ('in', 'bn'), (0.25, 0.75), (1 / 3, 2 / 3), Place('7x7', 1, 2)),
    LayerRatios('roi_head.bbox_head.fcs.0.sn', ('ln',), (1.0,), (1.0,), Place('linear', 9)),
    LayerRatios('sn', ('ln',), (1.0,), (1.0,)),
]
HEAD = 'run,layer,part,depth,stride,conv,scope,mean_ratio,var_ratio'


def test_csv_has_a_line_per_network_layer_and_scope() -> None:
    assert csv_table({'a': ROWS, 'b, c': ROWS[:1]}).splitlines() == [
        HEAD,
        'a,backbone.sn1,backbone,1,2,7x7,in,0.250000,0.333333',
        'a,backbone.sn1,backbone,1,2,7x7,bn,0.750000,0.666667',
        'a,roi_head.bbox_head.fcs.0.sn,bbox_head,9,,linear,ln,1.000000,1.000000',
        'a,sn,sn,,,,ln,1.000000,1.000000',
        '"b, c",backbone.sn1,backbone,1,2,7x7,in,0.250000,0.333333',
        '"b, c",backbone.sn1,backbone,1,2,7x7,bn,0.750000,0.666667',
    ]


def test_json_has_the_same_lines() -> None:
    networks = {'a': ROWS, 'b, c': ROWS[:1]}
    records = json.loads(json_table(networks))
    assert records[0] == dict(
        run='a',
        layer='backbone.sn1',
        part='backbone',
        depth=1,
        stride=2,
        conv='7x7',
        scope='in',
        mean_ratio=0.25,
        var_ratio=0.333333,
    )
    lines = list(csv.DictReader(StringIO(csv_table(networks))))
    assert [list(record) for record in records] == [HEAD.split(',')] * len(lines)
    for record, line in zip(records, lines, strict=True):
        for name, value in record.items():
            is_ratio = name.endswith('_ratio')
            shown = '' if value is None else str(value)
            assert line[name] == (f'{value:.6f}' if is_ratio else shown)


def test_tables_without_layers() -> None:
    assert csv_table({'a': []}) == HEAD + '\n'
    assert json.loads(json_table({})) == []


def test_ratios_of_unequal_length_are_an_error() -> None:
    with pytest.raises(ValueError, match='shorter'):
        csv_table({'a': [LayerRatios('layer', ('in', 'ln'), (0.5, 0.5), (1.0,))]})
