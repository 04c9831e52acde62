# The Faster R-CNN of (8,2) that the authors released, computed as they do: to test it.
_base_ = ['./faster-rcnn_r50_fpn_sn_8xb2_finetune.py', '../../_base_/detectron.py']

custom_imports = _base_.detectron_imports
model = _base_.detectron_faster

val_dataloader = _base_.detectron_dataset
test_dataloader = val_dataloader
val_evaluator = _base_.detectron_metric
test_evaluator = val_evaluator
visualizer = _base_.detectron_visualizer
