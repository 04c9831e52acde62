"""What sparse layers chose, as lists and tables."""

import torch
from torch import nn

from sn_openmmlab import SwitchNorm, sparsify
from sn_openmmlab.analysis.choices import ratio_table, scope_choices, summary_table
from sn_openmmlab.analysis.importance import importance_ratios


def _model() -> nn.Module:
    neck = nn.Sequential(SwitchNorm(4), SwitchNorm(4, num_ratio_groups=2), SwitchNorm(4))
    model = nn.ModuleDict({'neck': neck, 'module': nn.ModuleDict({'head': SwitchNorm(4)})})
    for layer in (neck[0], neck[2]):
        layer.choose(torch.tensor(0), torch.tensor(2))
    neck[1].choose(torch.tensor([0, 1]), torch.tensor([2, 2]))
    return model


def test_only_sparse_layers_are_listed_and_counted_by_part() -> None:
    choices = scope_choices(_model())
    assert [choice.name for choice in choices] == ['neck.0', 'neck.1', 'neck.2']
    assert (choices[1].means, choices[1].variances) == (('in', 'ln'), ('bn', 'bn'))
    lines = [line.split() for line in summary_table(choices).strip().splitlines()]
    assert lines[0] == ['part', 'means', 'variances', 'layers']
    assert lines[2:] == [
        ['neck', 'in', 'bn', '2'],
        ['neck', 'in', 'ln', 'bn', 'bn', '1'],
    ]


def test_ratios_before_are_shown_beside_the_choice() -> None:
    model = nn.ModuleDict({'a': SwitchNorm(4)})
    with torch.no_grad():
        model['a'].mean_weight.copy_(torch.tensor([0.5, 0.25, 0.25]).log())
    before = importance_ratios(model)
    text = ratio_table(before, importance_ratios(sparsify(model)))
    shown = ' '.join(text.splitlines()[-1].split())
    assert shown == 'a in in 0.50, ln 0.25, bn 0.25 in in 0.33, ln 0.33, bn 0.33'
