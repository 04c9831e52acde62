"""The classifier is trained once, and SN backbones start from it."""

from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope

from sn_openmmlab.checkpoints.files.safe_loading import read_checkpoint
from sn_openmmlab.errors import UsageError
from studies.experiments import digit_classifier
from studies.experiments.digit_classifier import Training, ensure_classifier
from studies.experiments.from_batch_norm import fine_tuning_config

TINY = Training(scenes=4, side=32, epochs=2, batch=4)


@pytest.fixture
def config(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """The config of the fine-tunings, with a narrower backbone."""
    pytest.importorskip('mmdet.models')
    monkeypatch.chdir(repo)
    monkeypatch.setattr(digit_classifier, '_VAL_SCENES', 2)
    config = fine_tuning_config(tmp_path / 'classifier.pth')
    config.model.backbone.base_channels = 8
    return config


def test_backbone_with_sn_starts_from_the_trained_one(config: Config, tmp_path: Path) -> None:
    file = tmp_path / 'classifier.pth'
    accuracy = ensure_classifier(config.model, file, TINY)
    assert 0 <= accuracy <= 1
    checkpoint = read_checkpoint(file)
    assert checkpoint['meta']['accuracy'] == accuracy
    state = checkpoint['state_dict']
    # Two epochs of five steps or so.
    assert state['bn1.num_batches_tracked'] >= 4
    assert state['bn1.running_var'].sub(1).abs().min() > 0
    assert not any('fc' in name for name in state)

    with DefaultScope.overwrite_default_scope('mmdet'):
        backbone = MODELS.build(config.model.backbone)
    backbone.init_weights()
    assert torch.equal(backbone.layer4[1].sn2.running_mean, state['layer4.1.bn2.running_mean'])
    assert backbone.sn1.importance_ratios()[0].tolist() == pytest.approx([1 / 3] * 3)


def test_trained_classifier_is_kept(config: Config, tmp_path: Path) -> None:
    file = tmp_path / 'classifier.pth'
    accuracy = ensure_classifier(config.model, file, TINY)
    written = file.stat()
    assert ensure_classifier(config.model, file, TINY) == accuracy
    assert file.stat() == written
    with pytest.raises(UsageError, match=r'classifier\.pth is not the classifier of the exper'):
        ensure_classifier(config.model, file, Training())
    assert file.stat() == written
