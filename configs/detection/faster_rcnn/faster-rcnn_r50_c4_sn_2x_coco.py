# Beyond the paper: Faster R-CNN, ResNet-50-C4 with SN in the backbone and the conv5 head,
# with the 2x schedule at a short side of 800, eight GPUs with two images each.
_base_ = '../../_base_/faster-rcnn_r50_c4.py'
# A ResNet-50 with SN in MMDetection's layout.
checkpoint = 'checkpoints/resnet50_sn.pth'

custom_imports = dict(imports=['sn_openmmlab'], allow_failed_imports=False)
# The base freezes its norms. The variance of an instance divides by HW - 1, as in the training of
# the weights.
norm_cfg = dict(type='SN', correction=1, requires_grad=True)
part = dict(
    norm_cfg=norm_cfg, norm_eval=False, init_cfg=dict(type='SNPretrained', checkpoint=checkpoint)
)
model = dict(backbone=part, roi_head=dict(shared_head=part))
# App. D: no weight decay on γ and β; as in the authors' settings, none on λ either.
optim_wrapper = dict(paramwise_cfg=dict(norm_decay_mult=0.0))

train_cfg = dict(max_epochs=24)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.001, by_epoch=False, begin=0, end=500),
    dict(type='MultiStepLR', by_epoch=True, milestones=[16, 22], gamma=0.1, end=24),
]
