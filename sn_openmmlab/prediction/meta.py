"""The names and colours of the classes that a trained model predicts."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from mmengine.config import Config
from torch import nn

from sn_openmmlab.runs.data.datasets import registered


def dataset_meta(
    checkpoint: Mapping[str, Any], model: nn.Module, config: Config
) -> dict[str, list]:
    """Return ``classes``, the names, and ``palette``, an RGB colour for each of them.

    They come from the checkpoint, or else from the dataset of the config. A class that has no name
    there is ``class 7``, and one without a colour gets a random one, always the same.

    Args:
        checkpoint: as mmengine reads it.
        model: tells how many classes there are.
        config: of `sn_openmmlab.prediction.config.inference_config`.
    """
    meta = _of_checkpoint(checkpoint)
    if not meta.get('classes'):
        meta = _of_config(config)
    names = list(meta.get('classes') or ())
    counts = [getattr(part, 'num_classes', None) for part in model.modules()]
    most = max((count for count in counts if isinstance(count, int)), default=0)
    names += [f'class {label}' for label in range(len(names), most)]
    given = meta.get('palette')
    known = list(given) if isinstance(given, list | tuple) else []
    random = np.random.default_rng(0).integers(0, 256, (len(names), 3)).tolist()
    palette = known[: len(names)] + random[len(known) :]
    # MMDetection draws no colours that are lists.
    return {'classes': names, 'palette': [tuple(color) for color in palette]}


def _of_checkpoint(checkpoint: Mapping[str, Any]) -> Mapping[str, Any]:
    meta = checkpoint.get('meta')
    meta = meta if isinstance(meta, dict) else {}
    # The older toolboxes had CLASSES and PALETTE here, in capitals.
    found = meta.get('dataset_meta') or meta
    return {key.lower(): value for key, value in found.items() if isinstance(key, str)}


def _of_config(config: Config) -> Mapping[str, Any]:
    dataset = config.test_dataloader.dataset
    kind = registered(dataset, 'DATASETS', config.default_scope)
    settings = {key: value for key, value in dataset.items() if key not in ('type', '_scope_')}
    try:
        # Lazy, so that it looks for no images.
        return kind(**{**settings, 'pipeline': [], 'lazy_init': True}).metainfo
    except Exception:
        # The data set may not be on this machine, and prediction needs only its names.
        return {}
