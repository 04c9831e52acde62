# The same at (8,4): 8 GPUs with 4 images each, and the learning rate in proportion.
_base_ = './8xb32.py'

train_dataloader = dict(batch_size=4)
optim_wrapper = dict(optimizer=dict(lr=0.0125))
auto_scale_lr = dict(base_batch_size=32)
