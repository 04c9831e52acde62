# Table 4 of the paper, row 4: Mask R-CNN, ResNet-50 and FPN, 2x schedule (App. D, setting 3). GN in
# the backbone, the FPN, the 4conv1fc box head and the mask head, fine-tuned from ImageNet GN
# weights.
_base_ = 'mmdet::mask_rcnn/mask-rcnn_r50_fpn_2x_coco.py'
# A ResNet-50 with GN and its preprocessing: BGR, not scaled.
checkpoint = 'open-mmlab://detectron/resnet50_gn'
images = dict(mean=[103.530, 116.280, 123.675], std=[1.0, 1.0, 1.0], bgr_to_rgb=False)

norm_cfg = dict(type='GN', num_groups=32)
model = dict(
    data_preprocessor=images,
    backbone=dict(
        norm_cfg=norm_cfg,
        norm_eval=False,
        init_cfg=dict(type='Pretrained', checkpoint=checkpoint),
    ),
    neck=dict(norm_cfg=norm_cfg),
    roi_head=dict(
        bbox_head=dict(type='Shared4Conv1FCBBoxHead', conv_out_channels=256, norm_cfg=norm_cfg),
        mask_head=dict(norm_cfg=norm_cfg),
    ),
)
# App. D: no weight decay on γ and β.
optim_wrapper = dict(paramwise_cfg=dict(norm_decay_mult=0.0))
