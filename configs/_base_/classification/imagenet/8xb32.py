# The paper's training of a ResNet-50 on ImageNet (App. C) at (8,32): 8 GPUs with 32 images each. It
# is MMPretrain's, with its weight decay on all parameters, except for two things. Every γ starts at
# 1. The augmentation adds AlexNet's noise of the colours, as in the authors' code.
_base_ = 'mmpretrain::resnet/resnet50_8xb32_in1k.py'

model = dict(backbone=dict(zero_init_residual=False))
train_pipeline = [
    # As bytes, white pixels to which the noise adds would become black.
    dict(type='LoadImageFromFile', to_float32=True),
    dict(type='RandomResizedCrop', scale=224),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    # The principal components of the colours in the order BGR.
    dict(
        type='Lighting',
        eigval=[55.4625, 4.7940, 1.1475],
        eigvec=[
            [-0.5836, -0.6948, 0.4203],
            [-0.5808, -0.0045, -0.8140],
            [-0.5675, 0.7192, 0.4009],
        ],
        alphastd=0.1,
    ),
    dict(type='PackInputs'),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
default_hooks = dict(checkpoint=dict(max_keep_ckpts=3))
