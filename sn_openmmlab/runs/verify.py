"""Whether a converted checkpoint fits the model that it is for."""

import os
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import torch
from mmengine.registry import DefaultScope
from torch import Tensor, nn

from sn_openmmlab.checkpoints.files.safe_loading import read_checkpoint
from sn_openmmlab.checkpoints.files.weights import find_weights
from sn_openmmlab.checkpoints.names import about, few, few_misfits
from sn_openmmlab.checkpoints.plans.batch_norm import BN_NETWORK, BN_RESNET
from sn_openmmlab.checkpoints.plans.layout import Layout
from sn_openmmlab.checkpoints.plans.layouts import recorded_layout
from sn_openmmlab.checkpoints.plans.norm_shapes import AUTHORS_SCOPES
from sn_openmmlab.checkpoints.plans.resnet import (
    has_groups,
    resnet_depth,
    resnet_stages,
    resnet_title,
)
from sn_openmmlab.checkpoints.plans.segmenter import ADE20K
from sn_openmmlab.checkpoints.usable import check_usable
from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.config import TOOLBOXES, read_config

_UNKNOWN = (
    'it was converted from a network that is no plain ResNet, so its model is not known here. Name '
    "it in your config, by init_cfg=dict(type='SNPretrained', checkpoint=...): that checks whether "
    'it fits.'
)


def verify(path: str, configs: str | os.PathLike) -> str:
    """Load a converted checkpoint into its model.

    Args:
        path: The checkpoint.
        configs: The folder of the configs.

    Returns:
        What the model is.

    Raises:
        UsageError: The file cannot be read or was not converted; or its weights and those of the
            model differ in names or shapes. The message names them.
    """
    checkpoint = read_checkpoint(path)
    with about(path):
        state = find_weights(checkpoint)
        check_usable(state)
        layout = recorded_layout(checkpoint)
        if layout is None and any(name.startswith('decode_head.') for name in state):
            layout = ADE20K
        if layout == BN_NETWORK:
            raise UsageError(_UNKNOWN)
        if layout and layout.config:
            title, model = layout.model, _built(layout, Path(configs))
        else:
            title, model = _backbone(state, layout == BN_RESNET)
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


def _built(layout: Layout, configs: Path) -> nn.Module:
    """Return the model of a layout that has a config."""
    config = read_config(configs / layout.config)
    config.model.backbone.init_cfg = None
    scope = config.default_scope
    with DefaultScope.overwrite_default_scope(scope):
        return import_module(f'{scope}.registry').MODELS.build(config.model)


def _backbone(state: Mapping[str, Tensor], from_bn: bool) -> tuple[str, nn.Module]:
    """Return the title and the model of a ResNet, alone or with its classifier."""
    prefix = 'backbone.' if any(name.startswith('backbone.') for name in state) else ''
    network = {name.removeprefix(prefix): weight for name, weight in state.items()}
    # The authors' ResNets have all four stages; those from BatchNorm may have fewer.
    title, model = _resnet(network, resnet_stages(network) if from_bn else 4)
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
    if control is None or control.numel() not in AUTHORS_SCOPES:
        raise UsageError(
            'it was not converted, since it has no layer1.0.sn1.mean_weight of 2 or 3 numbers.'
        )
    scopes = AUTHORS_SCOPES[control.numel()]
    if has_groups(state):
        raise UsageError(_UNKNOWN)
    inner = state.get('layer1.0.conv2.weight', torch.empty(64))
    stem = state.get('sn1.weight', state.get('stem.7.weight', torch.empty(64)))
    model = _resnet_class()(
        depth=resnet_depth(state),
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
    raise UsageError(f'to verify a checkpoint, install one of {", ".join(TOOLBOXES)}.')
