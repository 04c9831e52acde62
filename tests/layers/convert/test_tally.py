"""Descriptions of how many layers of which class there are."""

from torch import nn

from sn_openmmlab.layers.convert.tally import class_name, tally


class Outer:
    class Inner(nn.Module):
        pass


def test_a_class_is_named_with_its_module():
    assert class_name(nn.Linear(2, 2)) == 'torch.nn.modules.linear.Linear'
    assert class_name(Outer.Inner()) == f'{__name__}.Outer.Inner'


def test_the_most_frequent_come_first():
    assert tally(['b', 'a', 'c', 'a']) == '2 a, 1 b, 1 c'
    assert tally([]) == ''
