"""Whether a converted checkpoint fits the model that it is for."""

import os
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec

from mmengine.registry import DefaultScope
from torch import Tensor, nn

from sn_openmmlab.checkpoints.files.safe_loading import read_checkpoint
from sn_openmmlab.checkpoints.files.weights import find_weights
from sn_openmmlab.checkpoints.names import about, few, few_misfits
from sn_openmmlab.checkpoints.plans.bn_resnet import bn_resnet_depth
from sn_openmmlab.checkpoints.plans.plan import is_usable
from sn_openmmlab.checkpoints.plans.resnet import SCOPES
from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.config import TOOLBOXES, read_config


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
        unusable = [name for name, weight in state.items() if not is_usable(weight)]
        if unusable:
            raise UsageError(f'these are not dense tensors of floating point: {few(unusable)}.')
        segments = any(name.startswith('decode_head.') for name in state)
        title, model = _segmenter(segmenter) if segments else _backbone(state)
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


def _backbone(state: Mapping[str, Tensor]) -> tuple[str, nn.Module]:
    prefix = 'backbone.' if any(name.startswith('backbone.') for name in state) else ''
    control = state.get(f'{prefix}sn1.mean_weight')
    if control is None or control.numel() not in SCOPES:
        raise UsageError(
            f'it was not converted, for it has no {prefix}sn1.mean_weight of 2 or 3 numbers.'
        )
    scopes = SCOPES[control.numel()]
    depth = bn_resnet_depth(name.removeprefix(prefix) for name in state)
    width = state[f'{prefix}sn1.weight'].numel() if f'{prefix}sn1.weight' in state else 64
    model = _resnet_class()(
        depth=depth, base_channels=width, norm_cfg=dict(type='SN', scopes=scopes)
    )
    title = f'a ResNet-{depth} with SN of {", ".join(scopes)}'
    if not prefix:
        return title, model
    parts = {'backbone': model}
    classifier = state.get('head.fc.bias')
    if classifier is not None:
        parts['head'] = nn.ModuleDict({'fc': nn.Linear(model.feat_dim, classifier.numel())})
        title += ' and its classifier'
    return title, nn.ModuleDict(parts)


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
