"""Norms that were Switchable Normalization in training, for a model of an OpenMMLab toolbox.

A config and a checkpoint that lie beside this file need it. It needs torch and mmengine alone.
"""

from typing import Any

from mmengine.registry import MODELS
from torch import nn


@MODELS.register_module(force=True)
class ExportedNorm(nn.GroupNorm):
    """Holds the place of a norm while a model is built, under the name that it had in training."""

    _abbr_ = 'sn'

    def __init__(self, num_features: int, **options: Any) -> None:
        super().__init__(1, num_features)


@MODELS.register_module('WithExportedNorms', force=True)
def build_with_exported_norms(of: str, norms: dict[str, dict[str, Any]], **model: Any) -> nn.Module:
    """Build a model and put the exported norms in their places.

    Args:
        of: the type of the model.
        norms: by the name of the layer, `type` and arguments of its norm: one of torch, or one in
            the registry of mmengine. The type `Folded` names the convolution `conv` into which the
            norm was folded, and which has a bias now.
        **model: all other keys of the model.
    """
    built = MODELS.build({**model, 'type': of})
    for name, norm in norms.items():
        options = dict(norm)
        kind = options.pop('type')
        parent, _, child = name.rpartition('.')
        if kind == 'Folded':
            conv = built.get_submodule(options['conv'])
            conv.bias = nn.Parameter(conv.weight.new_zeros(conv.out_channels))
            layer = nn.Identity()
        elif hasattr(nn, kind):
            layer = getattr(nn, kind)(**options)
        else:
            layer = MODELS.build({**options, 'type': kind})
        setattr(built.get_submodule(parent), child, layer)
    for part in built.modules():
        # mmcv's ConvModule would go on to fold the norm that it had.
        if hasattr(part, 'turn_on_efficient_conv_bn_eval'):
            part.turn_on_efficient_conv_bn_eval(False)
    return built.train(built.training)
