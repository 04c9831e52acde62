# The deeper network: ResNet-101.
_base_ = './deeplabv3plus_r50b-d8_sn_4xb2-80k_cityscapes-512x1024.py'

checkpoint = 'checkpoints/resnet101_sn.pth'
model = dict(backbone=dict(depth=101, init_cfg=dict(checkpoint=checkpoint)))
