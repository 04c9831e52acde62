"""The measure of kept predictions, on a network with known predictions."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from studies.experiments import kept_knowledge
from studies.experiments.kept_knowledge import Kept, Start, kept_table, measure_kept, starts


def network() -> nn.Module:
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(8)
    with torch.no_grad():
        norm.running_mean.normal_()
        norm.running_var.copy_(torch.logspace(-3, 1, 8))
    pooled = nn.AdaptiveAvgPool2d(1)
    return nn.Sequential(nn.Conv2d(3, 8, 3), norm, nn.ReLU(), pooled, nn.Flatten())


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[Kept]:
    def images(_: Path) -> Tensor:
        return torch.randn(130, 3, 12, 12, generator=torch.Generator().manual_seed(1))

    monkeypatch.setattr(kept_knowledge, 'pretrained_network', network)
    monkeypatch.setattr(kept_knowledge, 'read_images', images)
    return measure_kept(Path())


def test_predictions_are_kept_at_ratio_one_and_less_below(kept: list[Kept]) -> None:
    plain = [k for k in kept if not k.start.fitted and k.start.mean == k.start.var][:8]
    assert plain[0].start.mean == (0, 0, 1)
    assert plain[0].agreement == 1
    assert plain[0].divergence == pytest.approx(0, abs=1e-9)
    divergences = [k.divergence for k in plain]
    assert divergences == sorted(divergences)


def test_fitting_keeps_more(kept: list[Kept]) -> None:
    by_start = {k.start: k.divergence for k in kept}
    for start, divergence in by_start.items():
        if start.fitted:
            assert divergence < by_start[Start(start.mean, start.var)]


def test_a_tenth_goes_to_each_scope_and_statistic_alone() -> None:
    plain = [(start.mean, start.var) for start in starts() if not start.fitted]
    tenth = (0.05, 0.05, 0.9)
    for pair in (
        (tenth, (0, 0, 1)),
        ((0, 0, 1), tenth),
        ((0.1, 0, 0.9),) * 2,
        ((0, 0.1, 0.9),) * 2,
    ):
        assert pair in plain
    assert all(sum(ratios) == pytest.approx(1) for pair in plain for ratios in pair)


def test_table_has_a_row_per_start() -> None:
    found = [Kept(Start((0.25, 0.25, 0.5), (0.0, 0.0, 1.0), fitted=True), 0.75, 1.25)]
    assert kept_table(found).splitlines()[-1] == (
        '| 0.25, 0.25, 0.5 | 0, 0, 1 | yes | 75.0 | 1.250 |'
    )
