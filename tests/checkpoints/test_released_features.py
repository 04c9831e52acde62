"""A converted backbone computes what the authors' network computed from the same weights."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from sn_openmmlab.checkpoints.files.weights import find_weights
from sn_openmmlab.checkpoints.plans.layouts import to_toolbox

SCOPES = {'resnet50_sn': ('in', 'ln', 'bn'), 'resnet50_sn_8x1': ('in', 'ln')}


@pytest.mark.parametrize('layout', SCOPES)
def test_features_are_the_authors(layout: str, released: Callable[[str], dict], repo: Path) -> None:
    resnet = pytest.importorskip('mmdet.models').ResNet
    golden = torch.load(repo / f'tests/data/released/{layout}_features.pt', weights_only=True)
    model = resnet(
        depth=50,
        norm_cfg=dict(type='SN', scopes=SCOPES[layout], correction=1),
        norm_eval=False,
    )
    state = to_toolbox(find_weights(released(layout)))
    for mode in ('eval', 'train'):
        model.load_state_dict(state)
        model.train(mode == 'train')
        with torch.no_grad():
            stages = model(golden['x'])
        assert len(stages) == len(golden[mode]) == 4
        for ours, theirs in zip(stages, golden[mode], strict=True):
            assert (ours[:, ::8] - theirs).norm() / theirs.norm() < 1e-4
