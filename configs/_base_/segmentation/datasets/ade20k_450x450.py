# ADE20K as in the paper's App. E: each image resized to 450x450, 2 per GPU. Tested at a short side
# of 450, in several scales of 300 to 600; no long side goes beyond 1000.
_base_ = './ade20k_512x512.py'

crop_size = (450, 450)
load, pack = _base_.load, _base_.pack
train_pipeline = [
    *load,
    dict(type='Resize', scale=crop_size, keep_ratio=False),
    dict(type='RandomFlip', prob=0.5),
    pack,
]
scale = (1000, 450)
test_pipeline = [load[0], dict(type='Resize', scale=scale, keep_ratio=True), load[1], pack]
tta_scales = [(1000, side) for side in (300, 400, 500, 600)]
tta_pipeline = [
    load[0],
    dict(
        type='TestTimeAug',
        transforms=[
            [dict(type='Resize', scale=scale, keep_ratio=True) for scale in tta_scales],
            [load[1]],
            [pack],
        ],
    ),
]

train_dataloader = dict(batch_size=2, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
