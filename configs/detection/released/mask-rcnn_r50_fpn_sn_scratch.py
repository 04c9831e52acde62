# The Mask R-CNN from scratch that the authors have a config for, but did not release, computed as
# they do: to test it. It takes BGR images that are not scaled.
_base_ = ['../mask_rcnn/mask-rcnn_r50_fpn_sn-all_scratch-3x_coco.py', '../../_base_/detectron.py']

custom_imports = _base_.detectron_imports
mean = [102.9801, 115.9465, 122.7717]
images = dict(mean=mean, std=[1.0, 1.0, 1.0], bgr_to_rgb=False)
model = dict(_base_.detectron_mask, data_preprocessor=images)

pad = dict(type='Pad', size_divisor=32, pad_val=dict(img=tuple(mean)))
pipeline = [pad if step['type'] == 'Pad' else step for step in _base_.detectron_pipeline]
val_dataloader = dict(dataset=dict(pipeline=pipeline))
test_dataloader = val_dataloader
val_evaluator = _base_.detectron_metric
test_evaluator = val_evaluator
visualizer = _base_.detectron_visualizer
