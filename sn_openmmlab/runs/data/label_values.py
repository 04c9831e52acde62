"""The check that label maps have no other values than the classes of their dataset."""

import copy
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from mmengine.dataset import BaseDataset
from mmengine.registry import DefaultScope

from sn_openmmlab.config_tree import walk
from sn_openmmlab.errors import UsageError, warn_user
from sn_openmmlab.runs.data.datasets import registered
from sn_openmmlab.runs.zoo import TOOLBOXES


def check_label_values(
    loader: str, settings: dict, dataset: BaseDataset, ignored: Collection[int]
) -> None:
    """Raise UsageError if the first or the last label map has a value that is not a class.

    Otherwise the loss fails on it: with an IndexError, or on CUDA with a failed assertion. Warn if
    neither map has a pixel of any class. Steps of the user's own may change the values: then
    nothing is looked at.

    Args:
        loader: the data loader that reads the dataset.
        settings: the config of the dataset.
        dataset: of MMSegmentation, with its list of files.
        ignored: the values of pixels without a class.
    """
    from mmseg.registry import TRANSFORMS

    pipeline = [step for _, step in walk(settings.get('pipeline'))]
    steps = [step for step in pipeline if 'LoadAnnotations' in str(step.get('type'))]
    classes = dataset.metainfo.get('classes')
    if not classes or not steps or any(map(_is_users, pipeline)):
        return
    labelled = False
    for item in (dataset.data_list[0], dataset.data_list[-1]):
        try:
            # Another default scope would find a transform of the same name elsewhere.
            with DefaultScope.overwrite_default_scope('mmseg'):
                loaded = TRANSFORMS.build(dict(steps[0]))(copy.deepcopy(item))
        except Exception:
            # The toolbox reports what cannot be built or read.
            return
        values = np.unique(loaded['gt_seg_map']).tolist()
        wrong = [value for value in values if value >= len(classes) and value not in ignored]
        labelled = labelled or any(value not in ignored for value in values)
        if wrong:
            raise UsageError(
                f'the label map {item["seg_map_path"]} that the {loader} of the config reads has '
                f'the value {wrong[0]}, but the dataset has {len(classes)} classes, 0 to '
                f'{len(classes) - 1}: correct the map (255 means no class), or classes in metainfo '
                'or reduce_zero_label of the dataset in the config.'
            )
    if not labelled:
        warn_user(
            f'neither the first nor the last label map that the {loader} of the config reads has a '
            'pixel of a class: all of them are ignored.'
        )


def _is_users(step: Mapping[str, Any]) -> bool:
    """Return whether a step is none of the toolboxes'."""
    kind = registered(dict(step), 'TRANSFORMS', 'mmseg')
    package = kind.__module__.partition('.')[0] if kind else ''
    return package not in ('', *TOOLBOXES, 'mmcv', 'mmengine', 'sn_openmmlab')
