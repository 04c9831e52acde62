# As on 8 GPUs with 2 images each, the gradients of which are averaged: one process takes their
# turns, 2 images at a time. On 8 real GPUs set optim_wrapper.accumulative_counts=1.
_base_ = './resnet10_sn_1xb16_cifar10.py'

train_dataloader = dict(batch_size=2)
optim_wrapper = dict(accumulative_counts=8)
# The tools count the images of a turn, not those of all turns.
auto_scale_lr = dict(base_batch_size=2)
default_hooks = dict(logger=dict(interval=160))
