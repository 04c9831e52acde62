# The Faster R-CNN C4 that the authors released, computed as they do: to test it.
_base_ = ['./faster-rcnn_r50_c4_sn_finetune.py', '../../_base_/detectron.py']

custom_imports = _base_.detectron_imports
model = dict(
    # Images are not padded.
    data_preprocessor=dict(pad_size_divisor=1),
    rpn_head=_base_.detectron_rpn,
    roi_head=dict(
        bbox_roi_extractor=dict(roi_layer=dict(aligned=False)),
        bbox_head=dict(type='DetectronBBoxHead', bbox_coder=_base_.detectron_coder),
    ),
    test_cfg=_base_.detectron_test,
)

pipeline = [step for step in _base_.detectron_pipeline if step['type'] != 'Pad']
val_dataloader = dict(dataset=dict(pipeline=pipeline))
test_dataloader = val_dataloader
val_evaluator = _base_.detectron_metric
test_evaluator = val_evaluator
visualizer = _base_.detectron_visualizer
