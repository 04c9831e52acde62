# Beyond the paper: its training at (8,32) with a ResNet-101.
_base_ = './resnet50_sn_8xb32_in1k.py'

model = dict(backbone=dict(depth=101))
