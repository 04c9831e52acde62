"""Mistakes in the settings of a run: loaders, schedules, models and hooks."""

from typing import Any

from studies.mistakes.case import Case, Scene, with_values
from studies.mistakes.configs import TASKS

_NAN = float('nan')


def setting_cases() -> list[Case]:
    """Return all of them."""
    return [
        *_each('default_scope', 'mmdett', 'box', 'map', 'class'),
        *_removed('default_scope', 'box', 'map'),
        *_loaders(),
        *_schedules(),
        *_models(),
        *_surroundings(),
    ]


def _loaders() -> list[Case]:
    loader = 'train_dataloader'
    return [
        *_each(f'{loader}.num_workers', -1, 'box', 'class'),
        *_each(f'{loader}.num_workers', '2', 'map'),
        *_each(f'{loader}.prefetch_factor', 2, 'box', 'map'),
        _with('class', {f'{loader}.num_workers': 1, f'{loader}.prefetch_factor': 0}),
        *_each(f'{loader}.persistent_workers', True, *TASKS),
        *_each('val_dataloader.persistent_workers', True, 'box'),
        *_each(f'{loader}.timeout', -1, 'map'),
        *_each(f'{loader}.batch_size', 0, 'box', 'map', 'class'),
        *_each(f'{loader}.batch_size', -2, 'class'),
        *_each(f'{loader}.batch_size', '2', 'mask'),
        *_each(f'{loader}.batch_size', None, 'box'),
        *_each(f'{loader}.batch_size', 2.5, 'map'),
        *_each(f'{loader}.batch_size', 1000, 'box', 'class'),
        _with('class', {f'{loader}.batch_size': 8, f'{loader}.drop_last': True}),
        _with('map', {f'{loader}.num_workers': 1, f'{loader}.multiprocessing_context': 'spwan'}),
        *_each(f'{loader}.num_worker', 2, 'box', 'map'),
        *_each(f'{loader}.sampler.shuffle', 'no', 'class'),
        *_removed(f'{loader}.sampler', 'map'),
        *_removed(f'{loader}.dataset', 'box', 'class'),
        *_removed(f'{loader}.batch_size', 'map'),
        *_each(f'{loader}.dataset', None, 'map'),
        *_each(f'{loader}.collate_fn', dict(type='pseudo_colate'), 'box'),
        *_each(f'{loader}.dataset.pipeline', [], 'box', 'map', 'class'),
        *_each(f'{loader}.dataset.pipeline', 'load', 'class'),
        _changed('box', 'the pipeline packs first', _pack_first),
        _changed('class', 'the pipeline packs first', _pack_first),
        *_removed(f'{loader}.dataset.pipeline.0', *TASKS, what='the step that loads images'),
        *_removed(f'{loader}.dataset.pipeline.1', 'box', 'map', what='the step that loads labels'),
        *_removed(f'{loader}.dataset.pipeline.-1', *TASKS, what='the step that packs'),
        *_removed(f'{loader}.dataset.type', 'map'),
        *_each(f'{loader}.dataset.test_mode', True, 'box'),
    ]


def _schedules() -> list[Case]:
    optimizer, schedule = 'optim_wrapper.optimizer', 'param_scheduler.0'
    return [
        *_each(f'{optimizer}.lr', -0.01, *TASKS),
        *_each(f'{optimizer}.lr', 'fast', 'box'),
        *_each(f'{optimizer}.lr', _NAN, 'class'),
        *_each(f'{optimizer}.lr', 1e30, *TASKS),
        *_each(f'{optimizer}.momentum', -1, 'class'),
        *_each(f'{optimizer}.weight_decay', -1, 'box'),
        *_removed(f'{optimizer}.lr', 'map'),
        *_each('optim_wrapper.clip_grad', dict(max_norm='big'), 'map'),
        *_each('optim_wrapper.clip_grad', dict(norm=35), 'box'),
        *_each('optim_wrapper.accumulative_counts', 0, 'class'),
        *_each('optim_wrapper.type', 'AmpOptimWrapper', 'map'),
        *_removed('optim_wrapper', 'box'),
        *_each('optim_wrapper', None, 'class'),
        *_each('train_cfg.max_epochs', 0, 'box', 'class'),
        *_each('train_cfg.max_epochs', -1, 'class'),
        *_each('train_cfg.max_epochs', 'ten', 'box'),
        *_each('train_cfg.max_epochs', 1.5, 'class'),
        *_each('train_cfg.max_iters', 0, 'map'),
        *_each('train_cfg.max_iter', 3, 'map'),
        *_each('train_cfg.val_interval', 0, 'box', 'map'),
        *_each('train_cfg.val_interval', '1', 'class'),
        *_removed('train_cfg', 'box'),
        *_removed('val_cfg', 'map'),
        *_removed('val_evaluator', 'class'),
        *_removed('val_dataloader', 'box'),
        *_each(f'{schedule}.milestones', 'late', 'box'),
        *_each(f'{schedule}.gamma', -0.1, 'box'),
        _with('map', {f'{schedule}.begin': 3, f'{schedule}.end': 1}),
        *_each(f'{schedule}.T_max', 0, 'class'),
        *_each('param_scheduler', dict(type='StepLR'), 'map'),
        *_each('param_scheduler', 'StepLR', 'class'),
        *_each('auto_scale_lr', dict(base_batch_size=0, enable=True), 'box'),
    ]


def _models() -> list[Case]:
    return [
        *_each('model', None, 'box'),
        *_each('model', 'FasterRCNN', 'box'),
        *_removed('model', 'class'),
        *_removed('model.type', 'map'),
        *_removed('model.backbone', *TASKS),
        *_each('model.roi_head.bbox_head.num_classes', 1, 'box'),
        *_each('model.roi_head.bbox_head.num_classes', 80, 'box', 'mask'),
        *_each('model.roi_head.bbox_head.num_classes', 0, 'box'),
        *_each('model.roi_head.mask_head.num_classes', 1, 'mask'),
        *_each('model.decode_head.num_classes', 1, 'map'),
        *_each('model.decode_head.num_classes', 150, 'map'),
        *_each('model.decode_head.num_classes', -1, 'map'),
        *_each('model.head.num_classes', 1, 'class'),
        *_each('model.head.num_classes', 1000, 'class'),
        *_each('model.head.num_classes', '2', 'class'),
        *_each('model.backbone.depth', 17, *TASKS),
        *_each('model.backbone.frozen_stages', 9, 'box'),
        *_each('model.backbone.out_indices', (0, 9), 'box'),
        *_each('model.neck.in_channels', [8, 16], 'mask'),
        *_each('model.neck.in_channels', [16, 16, 32, 64], 'box'),
        *_each('model.roi_head.bbox_roi_extractor.out_channels', 32, 'box'),
        *_each('model.roi_head.bbox_roi_extractor.featmap_strides', [4, 8], 'mask'),
        *_each('model.rpn_head.in_channels', 99, 'box'),
        *_each('model.rpn_head.anchor_generator.strides', [4], 'box'),
        *_each('model.rpn_head.anchor_generator.scales', [], 'mask'),
        *_each('model.decode_head.in_channels', 99, 'map'),
        *_each('model.decode_head.in_index', 9, 'map'),
        *_each('model.decode_head.loss_decode.class_weight', [1.0], 'map'),
        *_each('model.head.in_channels', 99, 'class'),
        *_each('model.head.topk', (1, 5), 'class'),
        *_each('model.data_preprocessor.mean', [0.0], 'box', 'map'),
        *_each('model.data_preprocessor.std', [0.0, 0.0, 0.0], 'box', 'map'),
        *_each('data_preprocessor.std', [0.0, 0.0, 0.0], 'class'),
        *_each('model.data_preprocessor.pad_size_divisor', 0, 'box'),
        *_each('model.data_preprocessor.size', (8, 8), 'map'),
        *_each('model.train_cfg.rcnn.sampler.num', -1, 'box'),
        *_each('model.train_cfg.rpn.assigner', None, 'box'),
        *_each('model.test_cfg.rcnn.nms.type', 'nmss', 'box'),
        *_norms(),
    ]


def _norms() -> list[Case]:
    place = 'model.backbone.norm_cfg'
    return [
        *_each(place, 'SN', 'box', 'map', 'class'),
        *_each(place, dict(type='SM'), *TASKS),
        *_each(place, dict(scopes=('in',)), 'map'),
        *_each(place, dict(type='SN', scope=('in',)), 'box'),
        *_each(place, dict(type='SN', scopes=('in', 'nl')), 'class'),
        *_each(place, dict(type='SN', scopes=()), 'class'),
        *_each(place, dict(type='SN', scopes=('gn',), num_groups=48), 'box'),
        *_each(place, dict(type='SN', momentum=2), 'map'),
        *_each(place, dict(type='SN', eps=-1), 'class'),
        *_each(place, dict(type='SN', eps=_NAN), 'mask'),
        *_each(place, dict(type='SN', requires_grad='no'), 'box'),
        *_each(place, dict(type='GN'), 'class'),
        *_each(place, dict(type='GN', num_groups=48), 'map'),
        *_each(place, [dict(type='SN')], 'box'),
        Case('box', 'command line: `--norm SM`', _arguments('--norm', 'SM')),
        Case('class', "command line: `--norm dict(type='SN'`", _arguments('--norm', 'dict(type')),
        Case('map', 'command line: `--norm-in backbone`', _arguments('--norm-in', 'backbone')),
        Case(
            'class',
            'command line: `--norm SN --norm-in backbon`',
            _arguments('--norm', 'SN', '--norm-in', 'backbon'),
        ),
    ]


def _surroundings() -> list[Case]:
    hooks = 'default_hooks'
    return [
        *_each(f'{hooks}.checkpoint.interval', 0, 'box'),
        *_each(f'{hooks}.checkpoint.interval', 'never', 'map'),
        *_each(f'{hooks}.checkpoint.save_best', 'coco/bbox_map', 'box'),
        *_each(f'{hooks}.checkpoint.save_best', 'mIou', 'map'),
        *_each(f'{hooks}.checkpoint.save_best', 'top1', 'class'),
        *_each(f'{hooks}.logger.interval', 0, 'class'),
        *_each(f'{hooks}.logger', None, 'class'),
        *_each(f'{hooks}.checkpoint', 'CheckpointHook', 'map'),
        *_each('custom_hooks', dict(type='EMAHook'), 'box'),
        *_each('custom_hooks', [dict(type='EMAHok')], 'map'),
        *_each('custom_hooks', [dict(begin=1)], 'class'),
        *_each('custom_hooks', [dict(type='EMAHook', momentum=2)], 'class'),
        *_each('custom_hooks', [dict(type='SparsifyHook', begin=-1)], 'class'),
        *_each('custom_imports', dict(imports=['sn_openmmlabb']), 'box', 'class'),
        *_each('custom_imports', dict(imports=3), 'map'),
        *_removed('custom_imports', 'box'),
        *_each('visualizer.vis_backends', [dict(type='LocalBackend')], 'box'),
        *_each('visualizer.vis_backends', 'LocalVisBackend', 'map'),
        *_each('env_cfg.mp_cfg.mp_start_method', 'forkk', 'box'),
        *_each('env_cfg.dist_cfg.backend', 'ncll', 'class'),
        *_each('randomness.seed', 'lucky', 'class'),
        *_each('randomness.seed', -1, 'map'),
        *_each('log_level', 'LOUD', 'class'),
        *_each('log_processor', dict(window_size=0), 'map'),
        *_each('val_evaluator.type', 'CocoMetic', 'box'),
        *_each('val_evaluator.metric', 'bbbox', 'box'),
        *_each('val_evaluator.metric', ['bbox', 'segm'], 'box'),
        *_each('val_evaluator.iou_metrics', ['mIou'], 'map'),
        *_each('val_evaluator.topk', (1, 5), 'class'),
        *_each('val_evaluator.topk', 'one', 'class'),
        *_each('val_evaluator', dict(type='mmseg.IoUMetric'), 'box'),
        *_each('val_evaluator', dict(type='mmdet.CocoMetric'), 'class'),
        *_each('launcher', 'slurmm', 'class'),
        *_each('resume', True, 'class'),
        *_each('runner_type', 'EpochRunner', 'map'),
        *_each('work_dir', 3, 'class'),
    ]


def _shown(value: Any) -> str:
    return repr(value).replace('\n', ' ')


def _each(key: str, value: Any, *tasks: str) -> list[Case]:
    change = f'`{key} = {_shown(value)}`'
    return [Case(task, change, with_values({key: value})) for task in tasks]


def _with(task: str, values: dict[str, Any]) -> Case:
    change = ', '.join(f'`{key} = {_shown(value)}`' for key, value in values.items())
    return Case(task, change, with_values(values))


def _removed(key: str, *tasks: str, what: str = '') -> list[Case]:
    def spoil(scene: Scene) -> None:
        scene.remove(key)

    return [Case(task, f'without {what or f"`{key}`"}', spoil) for task in tasks]


def _changed(task: str, change: str, spoil: Any) -> Case:
    return Case(task, change, spoil)


def _arguments(*arguments: str) -> Any:
    return lambda scene: scene.arguments.extend(arguments)


def _pack_first(scene: Scene) -> None:
    pipeline = scene.get('train_dataloader.dataset.pipeline')
    pipeline.insert(0, pipeline.pop())
