"""The table of importance ratios, against softmax by hand."""

import csv
from math import log
from pathlib import Path

import pytest
import torch
from torch import nn

from sn_openmmlab.analysis.importance import LayerRatios, importance_ratios, write_ratios
from sn_openmmlab.layers.sparse import sparsify
from sn_openmmlab.layers.switch_norm import SwitchNorm


def network() -> nn.Module:
    """Return two SN layers whose λ and λ′ are logarithms, so that the ratios are fractions."""
    stem = SwitchNorm(4)
    head = SwitchNorm(4, scopes=('bn', 'gn'), num_groups=2)
    controls = {
        stem.mean_weight: [1.0, 2.0, 3.0],
        stem.var_weight: [2.0, 7.0, 1.0],
        head.mean_weight: [3.0, 1.0],
        head.var_weight: [1.0, 1.0],
    }
    with torch.no_grad():
        for control, numbers in controls.items():
            control.copy_(torch.tensor([log(number) for number in numbers]))
    block = nn.ModuleDict({'conv': nn.Conv2d(4, 4, 1), 'bn': nn.BatchNorm2d(4), 'norm': head})
    return nn.ModuleDict({'stem': stem, 'blocks': nn.Sequential(block)})


def test_ratios_are_the_softmax_of_the_controls() -> None:
    stem, head = importance_ratios(network())
    assert (stem.name, stem.scopes) == ('stem', ('in', 'ln', 'bn'))
    assert stem.mean == pytest.approx((1 / 6, 2 / 6, 3 / 6))
    assert stem.var == pytest.approx((0.2, 0.7, 0.1))
    assert (head.name, head.scopes) == ('blocks.0.norm', ('bn', 'gn'))
    assert head.mean == pytest.approx((0.75, 0.25))
    assert head.var == pytest.approx((0.5, 0.5))


def test_model_without_the_layer_has_no_ratios() -> None:
    assert importance_ratios(nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1))) == []


def test_layer_itself_is_found() -> None:
    (row,) = importance_ratios(SwitchNorm(2))
    assert row.mean == pytest.approx((1 / 3,) * 3)


def test_table_has_a_line_per_layer_and_scope(tmp_path: Path) -> None:
    file = tmp_path / 'ratios.csv'
    write_ratios(importance_ratios(network()), file)
    with open(file, newline='') as stream:
        assert list(csv.reader(stream)) == [
            ['layer', 'scope', 'mean_ratio', 'var_ratio'],
            ['stem', 'in', '0.166667', '0.200000'],
            ['stem', 'ln', '0.333333', '0.700000'],
            ['stem', 'bn', '0.500000', '0.100000'],
            ['blocks.0.norm', 'bn', '0.750000', '0.500000'],
            ['blocks.0.norm', 'gn', '0.250000', '0.500000'],
        ]


def test_table_without_layers_has_its_head(tmp_path: Path) -> None:
    file = tmp_path / 'ratios.csv'
    write_ratios([], file)
    assert file.read_text().splitlines() == ['layer,scope,mean_ratio,var_ratio']


def test_ratios_of_unequal_length_are_an_error(tmp_path: Path) -> None:
    row = LayerRatios('layer', ('in', 'ln'), (0.5, 0.5), (1.0,))
    with pytest.raises(ValueError, match='shorter'):
        write_ratios([row], tmp_path / 'ratios.csv')


def test_groups_with_ratios_of_their_own_have_a_row_each() -> None:
    layer = SwitchNorm(4, scopes=('in', 'bn'), num_ratio_groups=2)
    with torch.no_grad():
        layer.mean_weight.copy_(torch.tensor([[log(3.0), 0.0], [0.0, 0.0]]))

    first, second = importance_ratios(nn.ModuleDict({'stem': layer}))

    assert (first.name, second.name) == ('stem (group 1)', 'stem (group 2)')
    assert first.mean == pytest.approx((0.75, 0.25)) and second.mean == pytest.approx((0.5, 0.5))


def test_ratios_of_a_sparse_layer_are_its_choice() -> None:
    (row,) = importance_ratios(sparsify(network()['stem']))

    assert row.mean == (0, 0, 1) and row.var == (0, 1, 0)
