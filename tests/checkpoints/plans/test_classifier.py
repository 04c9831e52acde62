"""The classifier of a backbone is kept under the names of MMPretrain."""

from collections.abc import Callable

import pytest
import torch

from sn_openmmlab.checkpoints.plans.batch_norm import plan_batch_norm
from sn_openmmlab.checkpoints.plans.classifier import keep_classifier
from sn_openmmlab.checkpoints.plans.layouts import to_toolbox
from sn_openmmlab.checkpoints.plans.sn_resnet import plan_sn_resnet
from sn_openmmlab.errors import UsageError

HEAD = {'head.fc.weight', 'head.fc.bias'}


def test_classifier_of_the_authors_is_kept(outlined: Callable[[str], dict]) -> None:
    weights = outlined('resnet50_sn_segmentation_pretrained')['state_dict']
    plan = keep_classifier(plan_sn_resnet(weights))
    plan.check()
    state = plan.convert()
    backbone = to_toolbox(weights)
    assert set(state) == {f'backbone.{name}' for name in backbone} | HEAD
    assert torch.equal(state['head.fc.weight'], weights['fc.weight'])
    assert set(plan_sn_resnet(state).dropped) == HEAD
    again = to_toolbox(state)
    assert {name: w.shape for name, w in again.items()} == {
        name: w.shape for name, w in backbone.items()
    }


def test_backbone_without_a_classifier_is_refused(outlined: Callable[[str], dict]) -> None:
    with pytest.raises(UsageError, match='has no classifier to keep'):
        keep_classifier(plan_sn_resnet(outlined('ade20k_encoder')))


def test_classifier_of_any_network_is_kept(bn_weights: dict) -> None:
    nested = {f'backbone.{name}': weight for name, weight in bn_weights.items()}
    heads = {'head.fc.weight': torch.ones(10, 7), 'head.fc.bias': torch.ones(10)}
    plan = keep_classifier(plan_batch_norm({**nested, **heads}))
    plan.check()
    assert plan.convert()['head.fc.weight'].shape == (10, 7)
    other = {name.replace('fc', 'retina_cls'): weight for name, weight in heads.items()}
    with pytest.raises(UsageError, match='has no classifier to keep'):
        keep_classifier(plan_batch_norm({**nested, **other}))
