"""The ratios in checkpoint files, without their configs, against softmax by hand."""

import dataclasses
from collections import Counter, OrderedDict
from collections.abc import Callable
from math import log
from pathlib import Path

import pytest
import torch
from torch import nn

from sn_openmmlab import SwitchNorm, sparsify
from sn_openmmlab.analysis.checkpoint_ratios import checkpoint_ratios, read_ratios
from sn_openmmlab.analysis.importance import LayerRatios, importance_ratios
from sn_openmmlab.errors import UsageError


def network(**sn: object) -> nn.Module:
    """Return a network of two layers of SN with ratios in sixths and tenths."""
    torch.manual_seed(0)
    model = nn.ModuleDict(
        {
            'backbone': nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), SwitchNorm(8, **sn)),
            'neck': nn.ModuleDict({'conv': nn.Conv2d(8, 8, 1), 'sn': SwitchNorm(8, **sn)}),
        }
    )
    with torch.no_grad():
        for layer in (model['backbone'][1], model['neck']['sn']):
            layer.mean_weight.normal_()
            layer.var_weight.normal_()
    return model


def without_strides(rows: list[LayerRatios]) -> list[LayerRatios]:
    """Return rows as a checkpoint gives them."""
    return [dataclasses.replace(row, place=row.place._replace(stride=None)) for row in rows]


def test_ratios_are_the_softmax_of_the_controls_in_the_file(tmp_path: Path) -> None:
    # A file of the authors: bare weights, names of parallel training, nothing about scopes.
    controls = {'mean_weight': [1.0, 2.0, 3.0], 'var_weight': [2.0, 7.0, 1.0]}
    weights = {f'module.sn1.{n}': torch.tensor(v).log() for n, v in controls.items()}
    weights |= {f'module.sn1.{n}': torch.ones(1, 4, 1, 1) for n in ('weight', 'running_mean')}
    torch.save({'module.conv1.weight': torch.zeros(4, 3, 7, 7), **weights}, tmp_path / 'sn.pth')

    (row,) = read_ratios(tmp_path / 'sn.pth')

    assert (row.name, row.scopes, row.place) == ('sn1', ('in', 'ln', 'bn'), ('7x7', 1, None))
    assert row.mean == pytest.approx((1 / 6, 2 / 6, 3 / 6))
    assert row.var == pytest.approx((0.2, 0.7, 0.1))


@pytest.mark.parametrize(
    ('layout', 'scopes'),
    [
        ('resnet50_sn', ('in', 'ln', 'bn')),
        ('resnet50_sn_8x1', ('in', 'ln')),
        ('resnet50_sn_detectron_fpn', ('in', 'ln', 'bn')),
    ],
)
def test_files_as_the_authors_released_them_are_read(
    layout: str, scopes: tuple, outlined: Callable
) -> None:
    rows = checkpoint_ratios(outlined(layout))
    # The 53 layers of the paper's Fig. 7: a 7×7, then 16 blocks and four shortcuts.
    kinds = Counter(row.place.conv for row in rows)
    assert kinds == {'7x7': 1, '1x1': 32, '3x3': 16, 'shortcut': 4}
    assert max(row.place.depth for row in rows) == 49
    assert {row.scopes for row in rows} == {scopes}


@pytest.mark.parametrize(
    'sn',
    [
        {},
        dict(scopes=('bn', 'gn', 'in'), num_groups=2),
        dict(scopes=('in', 'bn')),
        dict(scopes=('ln',)),
        dict(num_ratio_groups=2),
    ],
    ids=str,
)
@pytest.mark.parametrize('sparse', [False, True])
def test_file_of_a_model_has_the_ratios_of_the_model(
    sn: dict, sparse: bool, tmp_path: Path
) -> None:
    model = network(**sn)
    if sparse:
        sparsify(model)
    torch.save({'state_dict': model.state_dict(), 'meta': {}}, tmp_path / 'model.pth')
    assert read_ratios(tmp_path / 'model.pth') == without_strides(importance_ratios(model))


@pytest.mark.parametrize(
    'wrap',
    [
        torch.compile,
        nn.DataParallel,
        torch.optim.swa_utils.AveragedModel,
        lambda model: nn.DataParallel(torch.compile(model)),
    ],
    ids=['compiled', 'parallel', 'averaged', 'parallel and compiled'],
)
def test_file_of_a_wrapped_model_has_the_names_of_the_model(wrap: Callable) -> None:
    model = network()
    rows = checkpoint_ratios(wrap(model).state_dict())
    assert rows == without_strides(importance_ratios(model))


def test_scopes_come_from_the_config_where_no_layer_recorded_them() -> None:
    model = network(scopes=('ln', 'bn'))
    config = "model = dict(backbone=dict(norm_cfg=dict(type='SN', scopes=('ln', 'bn'))))"
    checkpoint = {'state_dict': dict(model.state_dict()), 'meta': {'cfg': config}}
    assert [row.scopes for row in checkpoint_ratios(checkpoint)] == [('ln', 'bn')] * 2


def test_two_ratios_without_running_statistics_are_in_and_ln_as_the_authors_have_them() -> None:
    weights = {'sn.mean_weight': torch.zeros(2), 'sn.var_weight': torch.zeros(2)}
    (row,) = checkpoint_ratios(weights)
    assert (row.scopes, row.mean) == (('in', 'ln'), (0.5, 0.5))


@pytest.mark.parametrize(
    ('change', 'sentence'),
    [
        ({'backbone.1.mean_weight': torch.ones(2)}, 'must have the same shape'),
        ({'backbone.1.var_weight': None}, 'must have the same shape'),
        ({'backbone.1.mean_weight': torch.tensor([1.0, float('nan'), 0])}, 'are not finite'),
        (
            {f'neck.sn.{name}_weight': torch.ones(4) for name in ('mean', 'var')},
            'nothing in it tells which scopes the ratios of neck.sn belong to',
        ),
        (
            {f'neck.sn.{name}_choice': torch.tensor([7]) for name in ('mean', 'var')},
            'the ratios of neck.sn are damaged: mean_choice is .7.',
        ),
    ],
)
def test_damaged_layer_is_one_sentence(change: dict, sentence: str, tmp_path: Path) -> None:
    state = {**dict(network().state_dict()), **change}
    torch.save({name: x for name, x in state.items() if x is not None}, tmp_path / 'bad.pth')
    with pytest.raises(UsageError, match=sentence) as caught:
        read_ratios(tmp_path / 'bad.pth')
    assert str(caught.value).startswith(f'{tmp_path / "bad.pth"}: ')


@pytest.mark.parametrize(
    'damage',
    [
        lambda x: x.to_sparse(),
        lambda x: x.to(torch.complex64),
        lambda x: x.long(),
        lambda x: x.bool(),
        lambda x: x.to('meta'),
        lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
    ],
    ids=['sparse', 'complex', 'integers', 'bool', 'meta', 'quantized'],
)
@pytest.mark.parametrize('part', ['mean', 'var'])
@pytest.mark.filterwarnings('ignore')
def test_controls_of_another_kind_are_one_sentence(damage: Callable, part: str) -> None:
    state = network().state_dict()
    state[f'neck.sn.{part}_weight'] = damage(torch.ones(3))
    with pytest.raises(UsageError, match=r'neck.sn are damaged: .* floating-point numbers'):
        checkpoint_ratios(state)


def test_scopes_that_contradict_the_record_are_an_error() -> None:
    state = network().state_dict()
    for part in ('mean', 'var'):
        state[f'neck.sn.{part}_weight'] = torch.ones(2)
    with pytest.raises(UsageError, match=r'nothing in it tells which scopes'):
        checkpoint_ratios(state)


def test_unknown_scope_is_an_error() -> None:
    state = network(scopes=('in', 'bn')).state_dict()
    state._metadata['neck.sn']['scopes'] = ['in', 'pn']
    with pytest.raises(UsageError, match=r'neck.sn belong to pn, which is none of'):
        checkpoint_ratios(state)


def test_network_without_sn_is_one_sentence() -> None:
    with pytest.raises(UsageError, match='it has no SN layer'):
        checkpoint_ratios(OrderedDict(nn.BatchNorm2d(4).state_dict()))


@pytest.mark.parametrize('dtype', [torch.half, torch.bfloat16, torch.float8_e4m3fn])
def test_ratios_are_those_of_hand_set_controls_in_low_precision(dtype: torch.dtype) -> None:
    weights = {f'sn.{n}_weight': torch.tensor([log(3.0), 0.0]).to(dtype) for n in ('mean', 'var')}
    (row,) = checkpoint_ratios(weights)
    assert row.mean == pytest.approx((0.75, 0.25), abs=0.01)
