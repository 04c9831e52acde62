# The same at (8,1): 8 GPUs with 1 image each, and the learning rate in proportion.
_base_ = './8xb32.py'

train_dataloader = dict(batch_size=1)
optim_wrapper = dict(optimizer=dict(lr=0.003125))
auto_scale_lr = dict(base_batch_size=8)
