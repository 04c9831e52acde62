"""Fitting a converted backbone to images, with the preprocessing of its config."""

import os
from collections.abc import Mapping
from pathlib import Path

import mmcv
import numpy as np
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from torch import Tensor, nn

from sn_openmmlab.checkpoints.names import few
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.convert.calibration import calibrate_switch_norm
from sn_openmmlab.layers.switch_norm import SwitchNorm

MOST_IMAGES = 96
_SIDE = 224
_PREFIX = 'backbone.'


def fit_to_images(
    state: Mapping[str, Tensor], config: Config, folder: str | os.PathLike
) -> tuple[dict[str, Tensor], int]:
    """Fit γ and β of a backbone that was converted from BatchNorm to the images of a folder.

    See `sn_openmmlab.calibrate_switch_norm`. The first 96 images by name are resized to 224 × 224
    and normalized as the config says.

    Args:
        state: the converted weights of the backbone, alone or under ``backbone.``.
        config: of a model that has this backbone with SN.
        folder: holds the images; other files in it are skipped.

    Returns:
        The weights with new γ and β, and the number of images.

    Raises:
        UsageError: the config has no backbone or another one, or the folder has no image.
    """
    images = _read_images(Path(folder))
    backbone, normalize = _build(config)
    prefix = _PREFIX if any(name.startswith(_PREFIX) for name in state) else ''
    own = {n.removeprefix(prefix): w for n, w in state.items() if n.startswith(prefix)}
    _load(backbone, own)
    pixels = normalize({'inputs': images, 'data_samples': None})['inputs']
    calibrate_switch_norm(backbone, pixels)
    fitted = {prefix + name: weight for name, weight in backbone.state_dict().items()}
    return {name: fitted.get(name, weight) for name, weight in state.items()}, len(images)


def _read_images(folder: Path) -> list[Tensor]:
    if not folder.is_dir():
        raise UsageError(f'{folder} is not a folder: name one with images to fit to.')
    images = []
    for file in sorted(folder.iterdir()):
        image = mmcv.imread(file) if file.is_file() and len(images) < MOST_IMAGES else None
        if image is not None:
            image = np.ascontiguousarray(mmcv.imresize(image, (_SIDE, _SIDE)))
            images.append(torch.from_numpy(image).permute(2, 0, 1))
    if not images:
        raise UsageError(f'{folder} has no images: name a folder with images to fit to.')
    return images


def _build(config: Config) -> tuple[nn.Module, nn.Module]:
    """Return the backbone with random weights and the preprocessor of its images."""
    backbone = config.model.get('backbone')
    pixels = config.model.get('data_preprocessor') or config.get('data_preprocessor')
    if not backbone or not pixels:
        raise UsageError(
            f'{config.filename} has no backbone and data_preprocessor in its model, as --fit-to '
            'needs: name another config.'
        )
    if config.default_scope == 'mmpretrain':
        pixels = {'type': 'ClsDataPreprocessor', **pixels}
    init_default_scope(config.default_scope)
    return MODELS.build({**backbone, 'init_cfg': None}), MODELS.build(pixels)


def _load(backbone: nn.Module, state: Mapping[str, Tensor]) -> None:
    try:
        missing, unexpected = backbone.load_state_dict(state, strict=False)
    except RuntimeError as error:
        reason = str(error).strip().split('\n')[-1].strip()
        raise UsageError(f'the backbone of the config is another one: {reason}') from error
    missing = [name for name in missing if not name.endswith('num_batches_tracked')]
    if missing or unexpected:
        raise UsageError(
            'the backbone of the config is another one: it also has '
            f'{few(missing) or "nothing"}, and lacks {few(unexpected) or "nothing"}.'
        )
    if not any(isinstance(layer, SwitchNorm) for layer in backbone.modules()):
        raise UsageError("the backbone of the config has no SN: give it norm_cfg=dict(type='SN').")
