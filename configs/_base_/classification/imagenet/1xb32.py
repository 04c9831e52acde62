# The same at (1,32): 1 GPU with 32 images, and the learning rate in proportion.
_base_ = './8xb32.py'

train_dataloader = dict(batch_size=32)
optim_wrapper = dict(optimizer=dict(lr=0.0125))
auto_scale_lr = dict(base_batch_size=32)
