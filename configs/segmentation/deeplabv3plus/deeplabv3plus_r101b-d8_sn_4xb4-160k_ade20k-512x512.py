# The deeper network: ResNet-101.
_base_ = './deeplabv3plus_r50b-d8_sn_4xb4-160k_ade20k-512x512.py'

checkpoint = 'checkpoints/resnet101_sn.pth'
model = dict(backbone=dict(depth=101, init_cfg=dict(checkpoint=checkpoint)))
