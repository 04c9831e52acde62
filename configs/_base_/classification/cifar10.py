# CIFAR-10 in folders, one per class, at a size that a busy CPU trains: one epoch of every tenth
# training image, tested on every fourth test image. For the whole set, set indices of the data sets
# to None and train longer.
_base_ = 'mmpretrain::_base_/default_runtime.py'

data_root = 'data/cifar10/'
# The means and standard deviations of the pixels of CIFAR-10's training images.
data_preprocessor = dict(
    num_classes=10,
    mean=[125.307, 122.961, 113.8575],
    std=[51.5865, 50.847, 51.255],
    to_rgb=True,
)
load, pack = dict(type='LoadImageFromFile'), dict(type='PackInputs')
augment = [
    dict(type='RandomCrop', crop_size=32, padding=4),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
]
train_dataloader = dict(
    batch_size=16,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(
        type='CustomDataset',
        data_root=data_root,
        data_prefix='train',
        indices=range(0, 50000, 10),
        pipeline=[load, *augment, pack],
    ),
)
val_dataloader = dict(
    batch_size=100,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='CustomDataset',
        data_root=data_root,
        data_prefix='test',
        indices=range(0, 10000, 4),
        pipeline=[load, pack],
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='Accuracy', topk=(1,))
test_evaluator = val_evaluator

max_epochs = 1
# As for ImageNet in the paper, all parameters decay by 1e-4, those of the norms too.
optim_wrapper = dict(optimizer=dict(type='SGD', lr=0.1, momentum=0.9, weight_decay=1e-4))
param_scheduler = dict(
    type='CosineAnnealingLR', T_max=max_epochs, by_epoch=True, convert_to_iter_based=True
)
train_cfg = dict(by_epoch=True, max_epochs=max_epochs, val_interval=1)
val_cfg = dict()
test_cfg = dict()
auto_scale_lr = dict(base_batch_size=16)
default_hooks = dict(logger=dict(interval=20), checkpoint=dict(max_keep_ckpts=1))
randomness = dict(seed=0)
