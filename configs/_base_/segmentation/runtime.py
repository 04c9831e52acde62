# What every segmenter needs to run. `--tta` tests with the tta_pipeline of the dataset.
default_scope = 'mmseg'
env_cfg = dict(
    cudnn_benchmark=True,
    mp_cfg=dict(mp_start_method='fork', opencv_num_threads=0),
    dist_cfg=dict(backend='nccl'),
)
vis_backends = [dict(type='LocalVisBackend')]
visualizer = dict(type='SegLocalVisualizer', vis_backends=vis_backends, name='visualizer')
log_level = 'INFO'
load_from = None
resume = False
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
tta_model = dict(type='SegTTAModel')
