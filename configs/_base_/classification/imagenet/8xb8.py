# The same at (8,8): 8 GPUs with 8 images each, and the learning rate in proportion.
_base_ = './8xb32.py'

train_dataloader = dict(batch_size=8)
optim_wrapper = dict(optimizer=dict(lr=0.025))
auto_scale_lr = dict(base_batch_size=64)
