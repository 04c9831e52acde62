"""Box heads that apply their deltas in the frame of the image, not of the resized one."""

import torch
from mmdet.models.roi_heads.bbox_heads import BBoxHead, ConvFCBBoxHead
from mmdet.registry import MODELS
from mmengine.config import ConfigDict
from mmengine.structures import InstanceData
from torch import Tensor


@MODELS.register_module()
class DetectronBBoxHead(BBoxHead):
    """`BBoxHead` that divides its boxes by the scale before it applies the deltas.

    It makes a difference, since the 1 in a width does not scale. The results are clipped to the
    image as it was before it was resized, and NMS sees them so. The arguments are the same.
    """

    def _predict_by_feat_single(
        self,
        roi: Tensor,
        cls_score: Tensor,
        bbox_pred: Tensor,
        img_meta: dict,
        rescale: bool = False,
        rcnn_test_cfg: ConfigDict | None = None,
    ) -> InstanceData:
        scale = roi.new_tensor(img_meta['scale_factor']).repeat(2)
        found = super()._predict_by_feat_single(
            roi / torch.cat([scale.new_ones(1), scale]),
            cls_score,
            bbox_pred,
            {**img_meta, 'img_shape': img_meta['ori_shape'][:2]},
            rescale=False,
            rcnn_test_cfg=rcnn_test_cfg,
        )
        if not rescale:
            # Without NMS there is one box for each class in a row.
            found.bboxes = found.bboxes * scale.repeat(found.bboxes.shape[-1] // 4)
        return found


@MODELS.register_module()
class DetectronConvFCBBoxHead(DetectronBBoxHead, ConvFCBBoxHead):
    """`ConvFCBBoxHead` that does the same. The arguments are those of `ConvFCBBoxHead`.

    `num_shared_fcs=2` makes a `Shared2FCBBoxHead`, and `num_shared_convs=4, num_shared_fcs=1` a
    `Shared4Conv1FCBBoxHead`.
    """
