"""How the authors and MMDetection name the parts of a detector."""

from sn_openmmlab.checkpoints.plans.sn_resnet_names import from_detectron
from sn_openmmlab.checkpoints.weight_names import bare

_BACKBONE = {True: 'Conv_Body.conv_body.', False: 'Conv_Body.'}
_C4_HEAD = 'Box_Head.'


def detector_target(name: str, fpn: bool) -> str | None:
    """Return MMDetection's name of a weight, or None if no detector of the authors has it.

    Args:
        name: The name in the file.
        fpn: Whether the detector has an FPN; otherwise it is a C4.
    """
    name = bare(name)
    module, _, part = name.rpartition('.')
    if module in _MODULES[fpn]:
        return f'{_MODULES[fpn][module]}.{part}'
    if name.startswith(_BACKBONE[fpn]):
        return f'backbone.{from_detectron(name.removeprefix(_BACKBONE[fpn]))}'
    if not fpn and name.startswith(_C4_HEAD):
        return f'roi_head.shared_head.{from_detectron(name.removeprefix(_C4_HEAD))}'
    return None


def _blocks(theirs: str, ours: str) -> dict[str, str]:
    """Return the names of a convolution and the SN after it."""
    start, _, number = theirs.rpartition('.')
    return {theirs: f'{ours}.conv', f'{start}.{int(number) + 1}': f'{ours}.sn'}


def _neck() -> dict[str, str]:
    # Theirs go from coarse to fine.
    names = _blocks('Conv_Body.conv_top.0', 'neck.lateral_convs.3')
    for i in range(3):
        theirs = f'Conv_Body.topdown_lateral_modules.{i}.conv_lateral.0'
        names |= _blocks(theirs, f'neck.lateral_convs.{2 - i}')
    for i in range(4):
        names |= _blocks(f'Conv_Body.posthoc_modules.{i}.0', f'neck.fpn_convs.{3 - i}')
    return names


def _rpn(prefix: str) -> dict[str, str]:
    parts = {'conv': 'rpn_conv', 'cls_score': 'rpn_cls', 'bbox_pred': 'rpn_reg'}
    return {f'RPN.{prefix}_{theirs}': f'rpn_head.{ours}' for theirs, ours in parts.items()}


def _heads() -> dict[str, str]:
    names = {
        # The box head has either two linear layers, or one after four convolutions.
        'Box_Head.fc1': 'roi_head.bbox_head.shared_fcs.0',
        'Box_Head.fc2': 'roi_head.bbox_head.shared_fcs.1',
        'Box_Head.fc': 'roi_head.bbox_head.shared_fcs.0',
        'Mask_Head.upconv': 'roi_head.mask_head.upsample',
        'Mask_Outs.classify': 'roi_head.mask_head.conv_logits',
    }
    for i in range(4):
        names |= _blocks(f'Box_Head.convs.{3 * i}', f'roi_head.bbox_head.shared_convs.{i}')
        names |= _blocks(f'Mask_Head.conv_fcn.{3 * i}', f'roi_head.mask_head.convs.{i}')
    return names


_OUTPUTS = {
    'Box_Outs.cls_score': 'roi_head.bbox_head.fc_cls',
    'Box_Outs.bbox_pred': 'roi_head.bbox_head.fc_reg',
}
# By whether there is an FPN.
_MODULES = {
    True: {**_neck(), **_rpn('FPN_RPN'), **_heads(), **_OUTPUTS},
    False: {**_rpn('RPN'), **_OUTPUTS},
}
