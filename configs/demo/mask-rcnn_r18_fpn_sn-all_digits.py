# The quickstart with masks: its Faster R-CNN and MMDetection's mask head, with SN there too.
_base_ = './faster-rcnn_r18_fpn_sn-all_digits.py'

channels = _base_.channels
model = dict(
    type='MaskRCNN',
    data_preprocessor=dict(pad_mask=True),
    roi_head=dict(
        mask_roi_extractor=dict(
            _base_.model.roi_head.bbox_roi_extractor,
            roi_layer=dict(type='RoIAlign', output_size=14, sampling_ratio=0),
        ),
        mask_head=dict(
            type='FCNMaskHead',
            in_channels=channels,
            conv_out_channels=channels,
            num_classes=10,
            norm_cfg=_base_.norm_cfg,
        ),
    ),
    train_cfg=dict(rcnn=dict(mask_size=28)),
    test_cfg=dict(rcnn=dict(mask_thr_binary=0.5)),
)

load = [_base_.load[0], dict(type='LoadAnnotations', with_bbox=True, with_mask=True)]
train_pipeline = [*load, *_base_.train_pipeline[2:]]
test_pipeline = [load[0], _base_.resize, load[1], _base_.test_pipeline[-1]]

train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
val_evaluator = dict(metric=['bbox', 'segm'])
test_evaluator = val_evaluator
