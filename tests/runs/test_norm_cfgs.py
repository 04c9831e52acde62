"""A ``norm_cfg`` that cannot be meant is told by its place in the config."""

import pytest
from mmengine.config import Config

from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.batch_renorm import BatchRenorm
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.runs.norm_cfgs import check_norm_cfgs

PLACE = 'model.neck.1.norm_cfg'


def check(norm_cfg: object) -> None:
    model = dict(type='A', neck=[dict(a=1), dict(norm_cfg=norm_cfg)])
    check_norm_cfgs(Config(dict(default_scope='mmdet', model=model)))


@pytest.mark.parametrize(
    ('norm_cfg', 'said'),
    [
        ('SN', rf"{PLACE} is 'SN': write {PLACE}=dict\(type='SN'\)\."),
        (dict(scopes=('in', 'ln')), f'{PLACE} has no type'),
        (dict(type='sn'), f"{PLACE} names the norm 'sn', which is not registered: the names of SN"),
        (dict(type='SwitchableNorm'), 'SwitchableNorm'),
        (dict(type='SN', scope=('in',)), f'{PLACE} has scope, but SN takes only .*scopes'),
        (dict(type='SyncSN', afine=True, epss=1), 'has afine, epss, but SN takes only .*affine'),
        (dict(type='SN', _delete_=True), 'has _delete_,'),
        (dict(type='SN', scopes='in'), f"{PLACE} does not fit SN: .* not 'in'"),
        (dict(type='SN', scopes=('in', 'batch')), "unknown scope 'batch'"),
        (dict(type=SwitchNorm, num_groups=0), 'num_groups is 0'),
        (dict(type='SN', num_ratio_groups=0), 'num_ratio_groups is 0'),
        (dict(type='SN', num_ratio_groups=2.0), 'not 2.0'),
        (dict(type='SN', momentum=2), 'momentum is 2'),
        (dict(type='SN', correction='1'), "not '1'"),
        (dict(type='SN', eps='1e-5'), "not '1e-5'"),
        (dict(type='SN', norm_eval='False'), "norm_eval must be True or False, not 'False'"),
        (
            dict(type='BRN', rmax=2),
            'has rmax, but BRN takes only eps, .*r_max, d_max, begin',
        ),
        (dict(type='BRN2d', r_max=0.5), f'{PLACE} does not fit BRN: r_max is 0.5'),
        (dict(type='SN', requires_grad='False'), 'requires_grad must be True or False'),
    ],
)
def test_wrong_norm_cfg_is_one_sentence(norm_cfg: object, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        check(norm_cfg)
    assert str(caught.value).startswith(PLACE)


@pytest.mark.parametrize(
    'norm_cfg',
    [
        None,
        dict(),
        dict(type='BN', requires_grad=False),
        dict(type='LN', eps=1e-6),
        dict(type='SN', scopes=['in', 'gn'], num_groups=48, requires_grad=False, norm_eval=True),
        dict(type='SN', scopes=['in', 'gn'], num_groups=48, num_ratio_groups=5),
        dict(type=SwitchNorm),
        dict(type='SyncSN', process_group=None),
        dict(type='BRN', begin=10, r_end=20, d_end=20, requires_grad=False),
        dict(type=BatchRenorm),
    ],
)
def test_right_norm_cfg_passes(norm_cfg: object) -> None:
    check(norm_cfg)


def test_the_one_of_with_sn_needs_no_type() -> None:
    model = dict(type='WithNorm', of='A', norm_cfg=dict(scopes=('in', 'ln')))
    check_norm_cfgs(Config(dict(default_scope='mmdet', model=model)))
