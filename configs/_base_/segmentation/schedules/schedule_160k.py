# MMSegmentation's 160 000 iterations, of 16 images.
_base_ = './schedule_80k.py'

max_iters = 160000
interval = 16000
param_scheduler = [
    dict(type='PolyLR', power=0.9, eta_min=1e-4, begin=0, end=max_iters, by_epoch=False),
]
train_cfg = dict(max_iters=max_iters, val_interval=interval)
default_hooks = dict(checkpoint=dict(interval=interval))
auto_scale_lr = dict(base_batch_size=16)
