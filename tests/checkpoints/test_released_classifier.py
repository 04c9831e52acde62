"""The authors' ImageNet weights run in MMPretrain's classifier, whole or as a start."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmpretrain.registry import MODELS
from torch import nn

from sn_openmmlab.checkpoints.files.weights import find_weights
from sn_openmmlab.checkpoints.plans.classifier import keep_classifier
from sn_openmmlab.checkpoints.plans.layouts import to_toolbox
from sn_openmmlab.checkpoints.plans.sn_resnet import plan_sn_resnet
from sn_openmmlab.runs.weights.check import check_start

# The config for each release.
CONFIGS = {'resnet50_sn': 'resnet50_sn_8xb32_in1k', 'resnet50_sn_8x1': 'resnet50_sn_8xb1_in1k'}


@pytest.fixture
def build(repo: Path) -> Callable[..., tuple[nn.Module, Config]]:
    """Return a function that builds the model of a release, and gives its config."""
    init_default_scope('mmpretrain')

    def build(release: str, **backbone: object) -> tuple[nn.Module, Config]:
        config = Config.fromfile(repo / f'configs/classification/resnet/{CONFIGS[release]}.py')
        config.model.backbone.update(backbone)
        model = dict(config.model, data_preprocessor=config.data_preprocessor)
        return MODELS.build(model), config

    return build


@pytest.mark.parametrize('release', CONFIGS)
def test_features_are_the_authors_and_feed_their_classifier(
    release: str, build: Callable, released: Callable[[str], dict], repo: Path
) -> None:
    golden = torch.load(repo / f'tests/data/released/{release}_features.pt', weights_only=True)
    weights = find_weights(released(release))
    model, _ = build(release)
    model.load_state_dict(keep_classifier(plan_sn_resnet(weights)).convert())
    model.eval()
    with torch.no_grad():
        (features,) = model.extract_feat(golden['x'], stage='backbone')
        scores = model(golden['x'])
    theirs = golden['eval'][-1]
    assert (features[:, ::8] - theirs).norm() / theirs.norm() < 1e-4
    pooled = features.mean((2, 3))
    (weight,), (bias,) = (
        [value for name, value in weights.items() if name.endswith(f'fc.{part}')]
        for part in ('weight', 'bias')
    )
    expected = pooled @ weight.T + bias
    torch.testing.assert_close(scores, expected)


@pytest.mark.parametrize('release', CONFIGS)
def test_a_backbone_starts_from_their_file(
    release: str,
    build: Callable,
    outlined: Callable[[str], dict],
    outlined_file: Callable[[str], Path],
) -> None:
    start = dict(type='SNPretrained', checkpoint=str(outlined_file(release)))
    # MMPretrain's own configs would set the last γ of each residual branch to 0.
    model, config = build(release, init_cfg=start, zero_init_residual=True)
    check_start(model, config)
    model.init_weights()
    expected = to_toolbox(find_weights(outlined(release)))
    state = model.backbone.state_dict()
    assert {*expected} <= {*state}
    for name, weight in expected.items():
        assert torch.equal(state[name], weight), name
