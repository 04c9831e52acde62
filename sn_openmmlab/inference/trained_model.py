"""A trained model, built and loaded as for a test."""

import copy

from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from mmengine.runner import load_checkpoint
from torch import nn

from sn_openmmlab.config_tree import walk
from sn_openmmlab.layers.convert.sync import revert_sync_switch_norm
from sn_openmmlab.layers.sync_switch_norm import SyncSwitchNorm
from sn_openmmlab.runs.errors.sentences import building
from sn_openmmlab.runs.weights.check import check_trained


def build_trained(config: Config, checkpoint: str) -> nn.Module:
    """Return the model of a config with the weights of a checkpoint, in evaluation mode.

    Weights that a training would start from are not loaded. SyncSN becomes SN, which in evaluation
    is the same.

    Args:
        config: of a run, as `sn_openmmlab.runs.config.read_config` returns it.
        checkpoint: the trained weights.

    Raises:
        UsageError: the model cannot be built, or the checkpoint does not fit it.
    """
    init_default_scope(config.default_scope)
    with building(f'what {config.filename} describes', config):
        model = MODELS.build(model_config(config))
    check_trained(model, checkpoint)
    load_checkpoint(model, checkpoint, map_location='cpu')
    if any(isinstance(layer, SyncSwitchNorm) for layer in model.modules()):
        revert_sync_switch_norm(model)
    return model.eval()


def model_config(config: Config) -> dict:
    """Return the config of the model as mmengine's runner builds it, without start weights."""
    model = copy.deepcopy(config.model)
    if config.get('data_preprocessor'):
        model.setdefault('data_preprocessor', copy.deepcopy(config.data_preprocessor))
    for _, part in walk(model):
        # timm's backbones download what the first names; the second is a distillation's teacher.
        for key in {'pretrained', 'teacher_ckpt'} & part.keys():
            part[key] = False if isinstance(part[key], bool) else None
    return model
