# The same at (1,8): 1 GPU with 8 images, and the learning rate in proportion.
_base_ = './8xb32.py'

train_dataloader = dict(batch_size=8)
optim_wrapper = dict(optimizer=dict(lr=0.003125))
auto_scale_lr = dict(base_batch_size=8)
