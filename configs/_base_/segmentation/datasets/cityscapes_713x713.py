# Cityscapes as in the paper's App. E: random crops of 713x713, 1 image per GPU, counted in epochs.
# Tested at full size, in several scales of 1 to 1.75.
_base_ = './cityscapes_512x1024.py'

crop_size = (713, 713)
load, pack = _base_.load, _base_.pack
train_pipeline = [
    *load,
    dict(type='RandomCrop', crop_size=crop_size),
    dict(type='RandomFlip', prob=0.5),
    pack,
]
img_ratios = [1.0, 1.25, 1.5, 1.75]
tta_pipeline = [
    load[0],
    dict(
        type='TestTimeAug',
        transforms=[
            [dict(type='Resize', scale_factor=ratio, keep_ratio=True) for ratio in img_ratios],
            [load[1]],
            [pack],
        ],
    ),
]

train_dataloader = dict(
    batch_size=1,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(pipeline=train_pipeline),
)
