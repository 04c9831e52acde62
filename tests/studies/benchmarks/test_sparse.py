"""The variants of one model, their measurement, and the committed numbers in the guide."""

import json
from pathlib import Path

import pytest
from torch import nn

from studies.presentation.benchmark_tables import sparse_table


def test_variants_differ_in_their_norms_alone(classification_config: Path) -> None:
    from sn_openmmlab.layers.switch_norm import SwitchNorm
    from sn_openmmlab.runs.config import read_config
    from studies.benchmarks.sparse import inferences, measure

    functions = inferences(read_config(classification_config))

    models = {name: function.args[0] for name, function in functions.items()}
    kinds = {
        name: {type(x) for x in model.modules() if isinstance(x, SwitchNorm | nn.BatchNorm2d)}
        for name, model in models.items()
    }
    turn = 'in, ln, bn in turn'
    sparse = {f'sparse SN, {name}': {SwitchNorm} for name in ('all bn', turn)}
    exported = {f'exported, {name}': set() for name in ('all bn', turn)}
    assert kinds == {'BN': {nn.BatchNorm2d}, 'SN': {SwitchNorm}, **sparse, **exported}
    assert models['sparse SN, all bn'].backbone.sn1.used_scopes == ('bn',)
    found = measure({name: functions[name] for name in ('BN', 'SN')}, 2)
    assert found['BN']['ratios'] == [1, 1]
    assert len(found['SN']['ratios']) == 2 and found['SN']['bytes'] > 0


def test_the_guide_shows_the_committed_table(repo: Path) -> None:
    data = json.loads((repo / 'docs/speed/sparse.json').read_text())
    assert sparse_table(data) in (repo / 'docs/guides/inference.md').read_text()


def test_table() -> None:
    record = dict(milliseconds=12.4, ratios=[0.5, 1.0, 2.0], bytes=2.5e6)
    text = sparse_table({'models': {'detector': {'SN': record}}})
    assert text.splitlines()[-1] == '| detector | SN | 12 | 1.00 (0.50 to 2.00) | 2.5 |'
    with pytest.raises(KeyError):
        sparse_table({})
