# Beyond the paper: the `sn-all` Faster R-CNN with the 2x schedule on (8,1), eight GPUs with
# one image each. SN mixes IN and LN only, since with one image BN is IN in training.
_base_ = './faster-rcnn_r50_fpn_sn-all_2x_coco.py'
# A ResNet-50 with SN trained at (8,1), with two ratios per layer, in MMDetection's layout.
checkpoint = 'checkpoints/resnet50_sn_8x1.pth'

norm_cfg = dict(type='SN', scopes=('in', 'ln'))
model = dict(
    backbone=dict(norm_cfg=norm_cfg, init_cfg=dict(checkpoint=checkpoint)),
    neck=dict(norm_cfg=norm_cfg),
    roi_head=dict(bbox_head=dict(norm_cfg=norm_cfg)),
)
train_dataloader = dict(batch_size=1)
# Half the batch size, half the learning rate.
optim_wrapper = dict(optimizer=dict(lr=0.01))
auto_scale_lr = dict(base_batch_size=8)
