"""Numbers that cannot be meant are found in a config; those that can are left."""

import math
from typing import Any

import pytest
from mmengine.config import Config

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.numbers import check_numbers

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ('part', 'said'),
    [
        (dict(optimizer=dict(lr=NAN)), 'model.optimizer.lr of the config is NaN'),
        (dict(bins=[1.0, [2.0, NAN]]), 'model.bins of the config is NaN'),
        (
            dict(anchors=[dict(ratios=[0.5, -2.0])]),
            'model.anchors.0.ratios of the config must be p',
        ),
        (dict(strides=[(4, 8), (0, 8)]), 'strides of the config must be positive'),
        (dict(clip_grad=dict(max_norm=-35)), 'max_norm of the config must be positive, not -35'),
        (dict(std=[0.0, 1.0, 1.0]), 'std of the config must be positive'),
        (dict(std=[1.0, INF, 1.0]), 'std of the config must be positive'),
        (dict(loss_weight=-1.0), 'loss_weight of the config must be positive or 0'),
        (dict(mean=[INF, 0.0, 0.0]), 'mean of the config must be finite'),
    ],
)
def test_number_that_cannot_be_meant(part: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said.replace('.', r'\.')):
        check_numbers(Config(dict(model=part)))


@pytest.mark.parametrize(
    'part',
    [
        # Of an init_cfg, FCOS, and the norms of gradients that are only logged.
        dict(type='Normal', mean=0, std=0),
        dict(regress_ranges=((-1, 64), (64, INF))),
        dict(clip_grad=dict(max_norm=INF)),
        dict(mean=[-1.0], frozen_stages=-1, scales=[4], debug=False, loss_weight=0.0),
    ],
)
def test_numbers_that_the_toolboxes_use(part: dict[str, Any]) -> None:
    check_numbers(Config(dict(model=part)))
