"""Swap the norm of a detector for Switchable Normalization, train it a few steps, draw its ratios.

    python examples/swap_the_norm.py [ratios.png]

It needs MMDetection, takes less than a minute on two CPU cores, and reads no data and no weights.
"""

import sys

import torch
from mmdet.testing import demo_mm_inputs
from mmengine.hub import get_config
from mmengine.logging import MMLogger
from mmengine.optim import build_optim_wrapper
from mmengine.registry import MODELS, init_default_scope

import sn_openmmlab  # noqa: F401  registers SN
from sn_openmmlab.analysis.importance import importance_ratios
from sn_openmmlab.analysis.layer_figure import layers_figure

STEPS = 5

# %% Load a config of MMDetection, and make the network small enough for a CPU.
torch.manual_seed(0)
MMLogger.get_current_instance().setLevel('WARNING')
config = get_config('mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py')
init_default_scope('mmdet')
model = config.model
model.backbone.depth = 18
model.neck.in_channels = [64, 128, 256, 512]
model.train_cfg.rcnn.sampler.num = 16

# %% Swap the norm: in the backbone, the neck and the head.
norm_cfg = dict(type='SN')
# From scratch: nothing is frozen, and no weights are loaded.
model.backbone.update(norm_cfg=norm_cfg, norm_eval=False, frozen_stages=-1, init_cfg=None)
model.neck.norm_cfg = norm_cfg
model.roi_head.bbox_head.update(
    type='Shared4Conv1FCBBoxHead', conv_out_channels=256, norm_cfg=norm_cfg
)
# As in the paper, no weight decay on γ, β and the control parameters λ. Leave out custom_keys in a
# real training: here λ learns faster, so that a few steps show something.
faster = dict(lr_mult=50.0, decay_mult=0.0)
config.optim_wrapper.paramwise_cfg = dict(
    norm_decay_mult=0.0, custom_keys=dict(mean_weight=faster, var_weight=faster)
)

# %% Build it, and train a few steps on two random images with random boxes.
detector = MODELS.build(model)
detector.init_weights()
detector.train()
optimizer = build_optim_wrapper(detector, config.optim_wrapper)
batch = demo_mm_inputs(image_shapes=[(3, 64, 96)] * 2, num_items=[3, 3], num_classes=80)
for step in range(1, STEPS + 1):
    losses = detector.train_step(batch, optimizer)
    print(f'step {step} of {STEPS}: loss {float(losses["loss"]):.3f}')

# %% Draw the ratios with which each layer mixes the three statistics; they start at one third.
rows = importance_ratios(detector)
file = sys.argv[1] if len(sys.argv) > 1 else 'ratios.png'
layers_figure({'detector': rows}).savefig(file)
moved = max(abs(ratio - 1 / 3) for row in rows for ratio in (*row.mean, *row.var))
print(f'{len(rows)} SN layers; the ratio that moved most is {moved:.5f} away from 1/3: see {file}')
