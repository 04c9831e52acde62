# What the authors' detectors compute otherwise than MMDetection's parts, for the configs in
# detection/released. Their boxes hold both of their ends.
detectron_imports = dict(
    imports=['sn_openmmlab', 'sn_openmmlab.detectron'], allow_failed_imports=False
)
detectron_coder = dict(type='DetectronBBoxCoder')
detectron_rpn = dict(
    anchor_generator=dict(type='DetectronAnchorGenerator'), bbox_coder=detectron_coder
)
# NMS counts both ends, and the RPN keeps boxes of any size.
detectron_test = dict(rpn=dict(nms=dict(offset=1), min_bbox_size=-1), rcnn=dict(nms=dict(offset=1)))
# Two samples in each direction, and no shift by half a pixel.
detectron_regions = dict(
    type='DetectronRoIExtractor', roi_layer=dict(sampling_ratio=2, aligned=False)
)
detectron_head = dict(type='DetectronConvFCBBoxHead', num_shared_fcs=2, bbox_coder=detectron_coder)
# Faster R-CNN and Mask R-CNN with FPN.
detectron_faster = dict(
    rpn_head=detectron_rpn,
    roi_head=dict(bbox_roi_extractor=detectron_regions, bbox_head=detectron_head),
    test_cfg=detectron_test,
)
detectron_mask = dict(
    rpn_head=detectron_rpn,
    roi_head=dict(
        bbox_roi_extractor=detectron_regions,
        bbox_head=dict(detectron_head, num_shared_convs=4, num_shared_fcs=1),
        mask_roi_extractor=detectron_regions,
        mask_head=dict(type='DetectronMaskHead'),
    ),
    test_cfg=detectron_test,
)

# The pixels are not rounded after resizing. Padding here rather than in the model makes the RPN
# clip its boxes to the padded image. The padding is the mean in BGR, so 0 after normalization.
detectron_pipeline = [
    dict(type='LoadImageFromFile', to_float32=True),
    dict(type='DetectronResize', scale=(1333, 800)),
    dict(type='Pad', size_divisor=32, pad_val=dict(img=(103.53, 116.28, 123.675))),
    dict(type='LoadAnnotations', with_bbox=True),
    dict(
        type='PackDetInputs',
        meta_keys=('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor'),
    ),
]
detectron_dataset = dict(dataset=dict(pipeline=detectron_pipeline))
detectron_metric = dict(type='DetectronCocoMetric')
detectron_visualizer = dict(type='DetectronVisualizer')
