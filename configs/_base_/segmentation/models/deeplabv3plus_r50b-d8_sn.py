# MMSegmentation's DeepLabV3+ with SN everywhere.
_base_ = './deeplabv3_r50b-d8_sn.py'

model = dict(
    decode_head=dict(type='DepthwiseSeparableASPPHead', c1_in_channels=256, c1_channels=48),
)
