# The same at (8,2): 8 GPUs with 2 images each, and the learning rate in proportion.
_base_ = './8xb32.py'

train_dataloader = dict(batch_size=2)
optim_wrapper = dict(optimizer=dict(lr=0.00625))
auto_scale_lr = dict(base_batch_size=16)
