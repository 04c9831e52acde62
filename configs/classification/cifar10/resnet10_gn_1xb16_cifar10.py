# The baseline: GN wherever the config with SN has SN, everything else the same. With 8 groups, the
# narrowest layers (16 channels) have two channels a group, as in a ResNet-50 with 32 groups.
_base_ = './resnet10_sn_1xb16_cifar10.py'

model = dict(backbone=dict(norm_cfg=dict(type='GN', num_groups=8)))
