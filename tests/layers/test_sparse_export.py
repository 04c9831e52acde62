"""An exported sparse layer computes only the statistics of the scopes that it chose.

That it computes what the layer computes is in tests/configs/test_exported_demo_models.py.
"""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

from sn_openmmlab.layers.sparse import sparsify
from sn_openmmlab.layers.switch_norm import SwitchNorm
from tests.exporters import Exported, export_program, export_traced_onnx

PAGE = Path(__file__).parents[2] / 'docs/guides/inference.md'
CHOICES = [('bn', 'bn'), ('in', 'bn'), ('bn', 'in'), ('in', 'in'), ('ln', 'ln')]


def sums_of(exported: Exported) -> int:
    """Return how many sums or means a graph takes."""
    parts = ('Reduce', 'aten.sum', 'aten.mean')
    return sum(count for name, count in exported.nodes.items() if name.startswith(parts))


@pytest.fixture
def chosen(randomized):
    """Return a function (means, variances, **options) -> a sparse layer in evaluation."""

    def make(means: str, variances: str, **options: object) -> SwitchNorm:
        layer = randomized(SwitchNorm(8, **options))
        with torch.no_grad():
            layer.mean_weight[..., layer.scopes.index(means)] = 9
            layer.var_weight[..., layer.scopes.index(variances)] = 9
        return sparsify(layer).eval()

    return make


@pytest.mark.parametrize(
    'export', [export_program, export_traced_onnx], ids=lambda export: export.__name__
)
def test_batch_statistics_alone_need_no_statistics_of_the_input(export, chosen):
    x = torch.randn(2, 8, 5, 7)

    assert sums_of(export(chosen('bn', 'bn'), x)) == 0
    assert sums_of(export(SwitchNorm(8).eval(), x)) > 0


def test_the_page_states_the_number_of_nodes(chosen, randomized):
    batch_norm = nn.BatchNorm2d(8)
    for table in batch_norm.state_dict().values():
        if table.dim() == 1:
            table.uniform_(0.5, 2)
    layers = {
        'BatchNorm': batch_norm,
        'SN': randomized(SwitchNorm(8)),
        **{f'sparse SN, {" and ".join(choice)}': chosen(*choice) for choice in CHOICES},
    }
    rows = re.findall(r'^\| ([^\d\n]+?) \| (\d+) \| (\d+) \|$', PAGE.read_text(), re.MULTILINE)
    stated = {name.replace('`', ''): tuple(map(int, counts)) for name, *counts in rows}
    counted = {}
    for name, layer in layers.items():
        file = export_traced_onnx(layer.eval(), torch.randn(2, 8, 5, 7))
        counted[name] = (sum(file.nodes.values()), sums_of(file))

    assert stated == counted
