"""Which BatchNorms become SN, and what the message says of those that stay."""

import warnings

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrize import register_parametrization

from sn_openmmlab import SwitchNorm, SyncSwitchNorm, convert_batch_norm
from sn_openmmlab.layers.convert.bn_kinds import describe_left, reason_to_stay, sn_class


class Negated(nn.BatchNorm2d):
    """A BatchNorm that computes something else."""

    def forward(self, input):
        return -super().forward(input)


class MoreNegated(Negated):
    """A BatchNorm that inherits such a forward."""


class AlwaysEval(nn.BatchNorm2d):
    """A BatchNorm that stays in evaluation mode."""

    def train(self, mode=True):
        return super().train(False)


class FrozenBatchNorm2d(nn.Module):
    """Like torchvision's and detectron2's: a BatchNorm made of buffers."""

    def __init__(self, channels):
        super().__init__()
        for name in ('weight', 'bias', 'running_mean', 'running_var'):
            self.register_buffer(name, torch.ones(channels))


class NormOfParameters(nn.Module):
    """A BatchNorm made of parameters."""

    def __init__(self, channels):
        super().__init__()
        for name in ('running_mean', 'running_var'):
            self.register_parameter(name, nn.Parameter(torch.ones(channels), requires_grad=False))


class Wrapper(nn.Module):
    """A wrapper that passes attributes on, like FSDP's."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.module, name)


def _patched():
    layer = nn.BatchNorm2d(4)
    layer.forward = lambda x: -x
    return layer


def _parametrized():
    layer = nn.BatchNorm2d(4)
    register_parametrization(layer, 'weight', nn.Tanh())
    return layer


STAY = [
    (lambda: Negated(4), 'a forward of its own'),
    (lambda: MoreNegated(4), 'a forward of its own'),
    (_patched, 'a forward of its own'),
    (lambda: AlwaysEval(4), 'a train of its own'),
    (_parametrized, 'a parametrization'),
    (lambda: FrozenBatchNorm2d(4), "not derived from torch's BatchNorm"),
    (lambda: NormOfParameters(4), "not derived from torch's BatchNorm"),
]
OTHERS = [
    lambda: nn.Conv2d(4, 4, 1),
    lambda: nn.GroupNorm(2, 4),
    lambda: nn.LayerNorm(4),
    lambda: nn.InstanceNorm2d(4, track_running_stats=True),
    lambda: SwitchNorm(4),
    lambda: SyncSwitchNorm(4),
    lambda: Wrapper(nn.BatchNorm2d(4)),
    nn.Module,
]


@pytest.mark.parametrize(('make', 'reason'), STAY)
def test_a_batch_norm_that_would_lose_something_stays(make, reason):
    layer = make()
    assert (sn_class(layer), reason_to_stay(layer)) == (None, reason)


@pytest.mark.parametrize('make', OTHERS)
def test_other_layers_are_neither_converted_nor_named(make):
    layer = make()
    assert (sn_class(layer), reason_to_stay(layer)) == (None, None)


@pytest.mark.parametrize(
    ('kind', 'becomes'),
    [
        *((kind, SwitchNorm) for kind in (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)),
        (nn.SyncBatchNorm, SyncSwitchNorm),
    ],
)
def test_torchs_become_sn(kind, becomes):
    assert (sn_class(kind(4)), reason_to_stay(kind(4))) == (becomes, None)


def test_layers_that_stay_are_counted_by_class_and_reason():
    layers = [Negated(4), nn.BatchNorm2d(4), FrozenBatchNorm2d(4), Negated(2), _patched()]
    assert describe_left(layers) == (
        f'2 {__name__}.Negated (a forward of its own), '
        f"1 {__name__}.FrozenBatchNorm2d (not derived from torch's BatchNorm), "
        '1 torch.nn.modules.batchnorm.BatchNorm2d (a forward of its own)'
    )
    assert describe_left([nn.BatchNorm2d(4), nn.Linear(2, 2)]) == ''


def _warnings(model):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        convert_batch_norm(model)
    # The warning points to the line that called it.
    assert all(warning.filename == __file__ for warning in caught)
    return [str(warning.message) for warning in caught]


def test_conversion_warns_of_layers_that_it_left():
    model = nn.Sequential(nn.BatchNorm2d(4), nn.BatchNorm2d(4), Negated(4), Negated(4))
    (said,) = _warnings(model)
    assert said == (
        f'convert_batch_norm turned 2 into SN and left 2 {__name__}.Negated (a forward of its '
        "own): put torch's BatchNorm in their places before the conversion if they are to be SN."
    )
    assert [type(layer) for layer in model] == [SwitchNorm, SwitchNorm, Negated, Negated]


def test_conversion_warns_that_it_converted_nothing():
    (said,) = _warnings(nn.Sequential(*(Negated(4) for _ in range(49))))
    assert f'turned nothing into SN and left 49 {__name__}.Negated' in said
    assert _warnings(nn.Sequential(nn.Conv2d(3, 4, 1), nn.GroupNorm(2, 4))) == [
        'convert_batch_norm found no BatchNorm in Sequential: nothing became SN.'
    ]


def test_no_warning_if_nothing_is_left_nor_the_second_time():
    model = nn.Sequential(nn.BatchNorm2d(4), nn.GroupNorm(2, 4))
    assert _warnings(model) == []
    assert _warnings(model) == []
