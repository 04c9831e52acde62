"""The table of replaced norms counts layers by part, kind and reason."""

from torch import nn

from sn_openmmlab.analysis.norm_changes import NormChange, changes_table, norm_changes


def test_rows_count_layers_by_part_kind_and_reason() -> None:
    changes = [
        NormChange('backbone.bn1', 'BN', 'SN'),
        NormChange('backbone.bn2', 'BN', 'SN'),
        NormChange('backbone.norm', 'LN', 'LN', 'a reason'),
        NormChange('roi_head.bbox_head.convs.0.gn', 'GN', 'SN'),
    ]
    rows = [line.split() for line in changes_table(changes).split('\n')]
    assert [row for row in rows if len(row) > 1] == [
        ['part', 'norm', 'layers', 'becomes'],
        ['backbone', 'BN', '2', 'SN'],
        ['backbone', 'LN', '1', 'stays:', 'a', 'reason'],
        ['bbox_head', 'GN', '1', 'SN'],
    ]


def test_other_models_have_no_changes() -> None:
    assert norm_changes(nn.Linear(1, 1)) == ()
