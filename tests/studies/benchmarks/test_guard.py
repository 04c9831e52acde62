"""The steps with and without the hook do the same, and the page shows what was measured."""

import json
from pathlib import Path

import torch

from studies.presentation.benchmark_tables import guard_table


def test_steps_differ_in_the_hook_alone(classification_config: Path) -> None:
    from sn_openmmlab.runs.config import read_config
    from studies.benchmarks.guard import BASELINE, guarded_steps
    from studies.benchmarks.sparse import measure

    steps = guarded_steps(read_config(classification_config), 32)

    assert list(steps) == [BASELINE, 'with']
    cells = {name: dict(zip(step.__code__.co_freevars, step.__closure__, strict=True))
             for name, step in steps.items()}  # fmt: skip
    models = {name: found['model'].cell_contents for name, found in cells.items()}
    before = models[BASELINE].head.fc.weight.clone()
    for step in steps.values():
        step()
    assert not torch.equal(models[BASELINE].head.fc.weight, before)
    for own, other in zip(models['with'].parameters(), models[BASELINE].parameters(), strict=True):
        assert torch.equal(own, other)
    found = measure(steps, 2, BASELINE)
    assert found[BASELINE]['ratios'] == [1, 1]
    assert len(found['with']['ratios']) == 2 and found['with']['bytes'] > 0


def test_table() -> None:
    record = dict(milliseconds=12.4, ratios=[0.5, 1.0, 2.0], bytes=2.5e6)
    text = guard_table({'models': {'detector': {'with': record}}})
    assert text.splitlines()[0] == '| model | hook | CPU ms | time / without | peak MB |'
    assert text.splitlines()[-1] == '| detector | with | 12 | 1.00 (0.50 to 2.00) | 2.5 |'


def test_the_page_shows_the_committed_table(repo: Path) -> None:
    table = guard_table(json.loads((repo / 'docs/speed/guard.json').read_text()))
    assert table in (repo / 'docs/results/speed.md').read_text()
