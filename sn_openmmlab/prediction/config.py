"""A config as the inferencers of the toolboxes read it."""

import copy
from importlib import import_module

from mmengine.config import Config

from sn_openmmlab.config_tree import walk
from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.data.datasets import datasets_in, registered

_LOADER = 'LoadImageFromFile'
_VISUALIZERS = {'mmdet': 'DetLocalVisualizer', 'mmseg': 'SegLocalVisualizer'}


def inference_config(config: Config, checkpoint: str) -> Config:
    """Return a copy of a config that starts from a checkpoint and from nothing else.

    Weights that a constructor would load are left out, the data set is the one whose pipeline
    reads image files, and the visualizer only draws.

    Args:
        config: of a run, as `sn_openmmlab.runs.config.read_config` returns it.
        checkpoint: becomes its ``load_from``.

    Raises:
        UsageError: no pipeline for testing reads image files.
    """
    config = copy.deepcopy(config)
    config.load_from = checkpoint
    for _, part in walk(config.model):
        # timm's backbones download what the first names; the second is the teacher of a
        # distillation, which predicts nothing.
        for key in {'pretrained', 'teacher_ckpt'} & part.keys():
            part[key] = False if isinstance(part[key], bool) else None
    config.test_dataloader = {'dataset': _dataset(config)}
    drawing = config.get('visualizer') or {'type': _VISUALIZERS.get(config.default_scope)}
    config.visualizer = {**drawing, 'vis_backends': None, 'save_dir': None}
    return config


def _dataset(config: Config) -> dict:
    """Return the first dataset for testing that reads images, its transforms by plain names."""
    for name in ('test_dataloader', 'val_dataloader'):
        loader = config.get(name) or {}
        for dataset in datasets_in(loader.get('dataset')):
            steps = [_named(step, config.default_scope) for step in dataset.get('pipeline', ())]
            if any(step.get('type') == _LOADER for step in steps):
                return {**dataset, 'pipeline': [step for step in steps if not _annotates(step)]}
    raise UsageError(
        f'{config.filename} has no {_LOADER} in the pipeline of its test_dataloader: give a config '
        'that reads its test images from files.'
    )


def _annotates(step: dict) -> bool:
    """Return whether a transform reads the ground truth, which may need a package of its own."""
    kind = str(step.get('type'))
    return kind.startswith('Load') and 'Annotation' in kind


def _named(step: dict, toolbox: str) -> dict:
    """Return a transform by its plain name, by which the inferencers look for it."""
    kind = registered(step, 'TRANSFORMS', toolbox)
    transforms = import_module(f'{toolbox}.registry').TRANSFORMS
    if kind is None or transforms.get(kind.__name__) is not kind:
        return step
    return {**step, 'type': kind.__name__}
