# The paper on ADE20K, App. E: 100 000 iterations of 16 images. The learning rate
# and the weight decay (none on norms and biases) are not in the paper.
_base_ = './schedule_80k.py'

max_iters = 100000
interval = 10000
optim_wrapper = dict(
    optimizer=dict(lr=0.02, weight_decay=1e-4),
    paramwise_cfg=dict(norm_decay_mult=0.0, bias_decay_mult=0.0),
)
param_scheduler = [
    dict(type='PolyLR', power=0.9, eta_min=0.0, begin=0, end=max_iters, by_epoch=False),
]
train_cfg = dict(max_iters=max_iters, val_interval=interval)
default_hooks = dict(checkpoint=dict(interval=interval))
auto_scale_lr = dict(base_batch_size=16)
