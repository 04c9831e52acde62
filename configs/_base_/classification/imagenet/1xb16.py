# The same at (1,16): 1 GPU with 16 images, and the learning rate in proportion.
_base_ = './8xb32.py'

train_dataloader = dict(batch_size=16)
optim_wrapper = dict(optimizer=dict(lr=0.00625))
auto_scale_lr = dict(base_batch_size=16)
