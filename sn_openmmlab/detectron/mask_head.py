"""Masks that are pasted into boxes of whole pixels."""

import cv2
import numpy as np
import torch
from mmdet.models.roi_heads.mask_heads import FCNMaskHead
from mmdet.registry import MODELS
from mmengine.config import ConfigDict
from torch import Tensor


@MODELS.register_module()
class DetectronMaskHead(FCNMaskHead):
    """`FCNMaskHead` that pastes as Detectron does; the arguments are the same.

    MMDetection samples a mask at the centers of the pixels. Here it is resized to a box of whole
    pixels, which matters in small boxes.
    """

    def _predict_by_feat_single(
        self,
        mask_preds: Tensor,
        bboxes: Tensor,
        labels: Tensor,
        img_meta: dict,
        rcnn_test_cfg: ConfigDict,
        rescale: bool = False,
        activate_map: bool = False,
    ) -> Tensor:
        masks = mask_preds if activate_map else mask_preds.sigmoid()
        if not self.class_agnostic:
            masks = masks[torch.arange(len(masks), device=masks.device), labels]
        masks = masks.reshape(len(masks), *masks.shape[-2:])
        scale = bboxes.new_tensor(img_meta['scale_factor'])
        size = np.array(img_meta['ori_shape'][:2])
        if rescale:
            # The boxes of the results are these, and MMDetection's head rescales them too.
            bboxes /= scale.repeat(2)
        else:
            size = np.round(size * scale.flip(0).tolist()).astype(int)
        # OpenCV resizes no half precision, and numpy has no bfloat16.
        masks, boxes = (x.float().cpu().numpy() for x in (masks, bboxes))
        pasted = paste_masks(masks, boxes, size, rcnn_test_cfg.mask_thr_binary)
        return torch.from_numpy(pasted).to(bboxes.device)


def paste_masks(
    masks: np.ndarray, boxes: np.ndarray, size: tuple[int, int], threshold: float = 0.5
) -> np.ndarray:
    """Return masks of the whole image, bool of shape (N, height, width).

    Each mask gets a border of one zero pixel, and its box grows with it. The corners are cut to
    whole numbers. The mask is resized to that box, both ends held.

    Args:
        masks: Probabilities, (N, M, M).
        boxes: x1, y1, x2, y2 in the image, (N, 4).
        size: Height and width of the image.
        threshold: The mask is where the probability is above it.
    """
    height, width = size
    pasted = np.zeros((len(masks), height, width), bool)
    masks = np.pad(masks, ((0, 0), (1, 1), (1, 1)))
    for whole, mask, box in zip(pasted, masks, _grown(boxes, masks.shape[-1]), strict=True):
        x1, y1, x2, y2 = box.tolist()
        resized = cv2.resize(mask, (max(x2 - x1 + 1, 1), max(y2 - y1 + 1, 1))) > threshold
        part = whole[max(y1, 0) : max(y2 + 1, 0), max(x1, 0) : max(x2 + 1, 0)]
        top, left = max(-y1, 0), max(-x1, 0)
        part[:] = resized[top : top + part.shape[0], left : left + part.shape[1]]
    return pasted


def _grown(boxes: np.ndarray, padded: int) -> np.ndarray:
    """Return boxes of whole pixels that have room for the border of their masks."""
    first, last = boxes[:, :2], boxes[:, 2:]
    reach = (last - first) / 2 * (padded / (padded - 2))
    middle = (first + last) / 2
    return np.concatenate([middle - reach, middle + reach], 1).astype(np.int32)
