# The detector of `sn-all` at a size that a CPU trains from scratch: ResNet-18, narrower FPN and
# head, nothing frozen, nothing pretrained, two images per batch, anchors for images of 200 to 400
# pixels.
_base_ = '../detection/faster_rcnn/faster-rcnn_r50_fpn_sn-all_1x_coco.py'

# No weights of the authors are loaded, so the variance is that of the paper's Eq. 2. MMEngine
# removes `_delete_` from a dict once it has read it, so each part has its own.
norm_cfg = dict(_delete_=True, type='SN')
channels = 64
model = dict(
    backbone=dict(depth=18, norm_cfg=dict(norm_cfg), frozen_stages=-1, init_cfg=None),
    neck=dict(norm_cfg=dict(norm_cfg), in_channels=[64, 128, 256, 512], out_channels=channels),
    rpn_head=dict(
        in_channels=channels,
        feat_channels=channels,
        anchor_generator=dict(scales=[4]),
    ),
    roi_head=dict(
        bbox_roi_extractor=dict(out_channels=channels, finest_scale=28),
        bbox_head=dict(
            norm_cfg=dict(norm_cfg),
            in_channels=channels,
            conv_out_channels=channels,
            fc_out_channels=512,
        ),
    ),
    train_cfg=dict(
        rpn_proposal=dict(nms_pre=500, max_per_img=200),
        rcnn=dict(sampler=dict(num=128)),
    ),
    test_cfg=dict(rpn=dict(nms_pre=500, max_per_img=200)),
)
# The base's learning rate, 0.02, is for 16 images. With norms in all layers, a detector from
# scratch takes more than the 0.0025 that the linear scaling rule gives for two images.
optim_wrapper = dict(
    optimizer=dict(lr=0.01),
    clip_grad=dict(max_norm=35),
)
auto_scale_lr = dict(base_batch_size=2)
default_hooks = dict(
    logger=dict(interval=20),
    checkpoint=dict(max_keep_ckpts=1),
)
