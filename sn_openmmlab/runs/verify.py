"""Whether a converted checkpoint fits the model that it is for."""

import os
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec

import torch
from mmengine.registry import DefaultScope
from torch import Tensor, nn

from sn_openmmlab.checkpoints.files.provenance import recorded
from sn_openmmlab.checkpoints.files.safe_loading import read_checkpoint
from sn_openmmlab.checkpoints.files.weights import find_weights
from sn_openmmlab.checkpoints.names import about, few, few_misfits
from sn_openmmlab.checkpoints.plans.batch_norm import BATCH_NORM_LAYOUTS
from sn_openmmlab.checkpoints.plans.bn_resnet import (
    bn_resnet_depth,
    bn_resnet_stages,
    has_groups,
    resnet_title,
)
from sn_openmmlab.checkpoints.plans.plan import check_usable
from sn_openmmlab.checkpoints.plans.resnet import SCOPES
from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.config import TOOLBOXES, read_config

_UNKNOWN = (
    'it was converted from a network that is no plain ResNet, whose model is not known here: name '
    "it as the checkpoint of init_cfg=dict(type='SNPretrained', …) in your config, which looks "
    'whether it fits.'
)


def verify(path: str, segmenter: str | os.PathLike) -> str:
    """Load a converted checkpoint into its model.

    Args:
        path: the checkpoint.
        segmenter: the config of the model for a segmenter.

    Returns:
        What the model is.

    Raises:
        UsageError: the file cannot be read or was not converted, weights that the model has are
            missing in it or of another shape, or it has others; the message names them.
    """
    checkpoint = read_checkpoint(path)
    with about(path):
        state = find_weights(checkpoint)
        check_usable(state)
        any_network, bn_resnet = BATCH_NORM_LAYOUTS
        layout = recorded(checkpoint, 'layout')
        if layout == any_network:
            raise UsageError(_UNKNOWN)
        segments = any(name.startswith('decode_head.') for name in state)
        title, model = _segmenter(segmenter) if segments else _backbone(state, layout == bn_resnet)
        _load(title, model, state)
    return title


def _load(title: str, model: nn.Module, state: Mapping[str, Tensor]) -> None:
    expected = model.state_dict()
    misfits = {
        name: (weight.shape, expected[name].shape)
        for name, weight in state.items()
        if name in expected and weight.shape != expected[name].shape
    }
    if misfits:
        raise UsageError(f'it does not fit {title}: it has {few_misfits(misfits)}.')
    missing, unexpected = model.load_state_dict(state, strict=False)
    if missing or unexpected:
        raise UsageError(
            f'it does not fit {title}: missing {few(missing) or "nothing"}; unexpected '
            f'{few(unexpected) or "nothing"}.'
        )


def _backbone(state: Mapping[str, Tensor], from_bn: bool) -> tuple[str, nn.Module]:
    prefix = 'backbone.' if any(name.startswith('backbone.') for name in state) else ''
    network = {name.removeprefix(prefix): weight for name, weight in state.items()}
    # The authors' have all four; from BatchNorm there may be fewer.
    title, model = _resnet(network, bn_resnet_stages(network) if from_bn else 4)
    if not prefix:
        return title, model
    parts = {'backbone': model}
    classifier = state.get('head.fc.bias')
    if classifier is not None:
        parts['head'] = nn.ModuleDict({'fc': nn.Linear(model.feat_dim, classifier.numel())})
        title += ' and its classifier'
    return title, nn.ModuleDict(parts)


def _resnet(state: Mapping[str, Tensor], stages: int) -> tuple[str, nn.Module]:
    control = state.get('layer1.0.sn1.mean_weight')
    if control is None or control.numel() not in SCOPES:
        raise UsageError(
            'it was not converted, for it has no layer1.0.sn1.mean_weight of 2 or 3 numbers.'
        )
    scopes = SCOPES[control.numel()]
    if has_groups(state):
        raise UsageError(_UNKNOWN)
    inner = state.get('layer1.0.conv2.weight', torch.empty(64))
    stem = state.get('sn1.weight', state.get('stem.7.weight', torch.empty(64)))
    model = _resnet_class()(
        depth=bn_resnet_depth(state),
        base_channels=len(inner),
        stem_channels=stem.numel(),
        num_stages=stages,
        strides=(1, 2, 2, 2)[:stages],
        dilations=(1,) * stages,
        out_indices=(stages - 1,),
        deep_stem=any(name.startswith('stem.') for name in state),
        avg_down='layer2.0.downsample.2.weight' in state,
        norm_cfg=dict(type='SN', scopes=scopes),
    )
    return f'{resnet_title(state, stages)} with SN of {", ".join(scopes)}', model


def _resnet_class() -> type[nn.Module]:
    for toolbox in TOOLBOXES:
        if find_spec(toolbox):
            return import_module(f'{toolbox}.models').ResNet
    raise UsageError(f'to verify a checkpoint, one of {", ".join(TOOLBOXES)} has to be installed.')


def _segmenter(config: str | os.PathLike) -> tuple[str, nn.Module]:
    model = read_config(config).model
    model.backbone.init_cfg = None
    with DefaultScope.overwrite_default_scope('mmseg'):
        return 'the DeepLab of the paper', import_module('mmseg.registry').MODELS.build(model)
