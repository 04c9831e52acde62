# The quickstart of classification: the backbone of the quickstart's detector, with SN, on crops of
# the synthetic digits of studies/make_demo_data.py, a folder for each digit, on a CPU.
_base_ = '../classification/cifar10/resnet18_sn_1xb32_cifar10-64x64.py'

data_root = 'data/demo/digits/'
# Digits are not flipped: a 2 would look like a 5.
train_pipeline = [_base_.load, _base_.augment[0], _base_.enlarge, _base_.pack]
train_dataloader = dict(
    batch_size=16,
    dataset=dict(data_root=data_root, indices=None, pipeline=train_pipeline),
)
val_dataloader = dict(dataset=dict(data_root=data_root, data_prefix='val', indices=None))
test_dataloader = val_dataloader

max_epochs = 10
optim_wrapper = dict(optimizer=dict(lr=0.05))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=100),
    dict(type='CosineAnnealingLR', T_max=max_epochs, by_epoch=True, convert_to_iter_based=True),
]
train_cfg = dict(max_epochs=max_epochs, val_interval=2)
default_hooks = dict(logger=dict(interval=25))
auto_scale_lr = dict(base_batch_size=16)
