"""What the authors' detectors compute otherwise than MMDetection's parts, as parts of MMDetection.

The authors trained their detectors with code after Detectron's. Its boxes hold both of their ends:
the width of a box is `x2 - x1 + 1`. Importing this package registers the parts in MMDetection; the
configs in `configs/detection/released` name it in their `custom_imports`.
"""

from sn_openmmlab.detectron.anchors import DetectronAnchorGenerator
from sn_openmmlab.detectron.bbox_heads import DetectronBBoxHead, DetectronConvFCBBoxHead
from sn_openmmlab.detectron.box_coder import DetectronBBoxCoder
from sn_openmmlab.detectron.coco_metric import DetectronCocoMetric
from sn_openmmlab.detectron.mask_head import DetectronMaskHead
from sn_openmmlab.detectron.resize import DetectronResize
from sn_openmmlab.detectron.roi_extractor import DetectronRoIExtractor
from sn_openmmlab.detectron.visualizer import DetectronVisualizer

__all__ = [
    'DetectronAnchorGenerator',
    'DetectronBBoxCoder',
    'DetectronBBoxHead',
    'DetectronCocoMetric',
    'DetectronConvFCBBoxHead',
    'DetectronMaskHead',
    'DetectronResize',
    'DetectronRoIExtractor',
    'DetectronVisualizer',
]
