# The same at (8,16): 8 GPUs with 16 images each, and the learning rate in proportion.
_base_ = './8xb32.py'

train_dataloader = dict(batch_size=16)
optim_wrapper = dict(optimizer=dict(lr=0.05))
auto_scale_lr = dict(base_batch_size=128)
