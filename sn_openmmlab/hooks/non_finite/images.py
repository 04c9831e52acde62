"""The paths of the images in a batch."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor


def image_paths(batch: Any) -> list[str]:
    """Return the path of each image of a batch, or its id where the data have no path.

    Args:
        batch: as a data loader of the toolboxes gives it.
    """
    return [_name(sample) for sample in _samples(batch)]


def of_rows(paths: Sequence[str], tensor: Tensor) -> list[str]:
    """Return those of the images whose rows of a tensor are not finite.

    All images are returned if the rows of the tensor are not the images of the batch.
    """
    if tensor.ndim and len(tensor) == len(paths):
        rows = (~tensor.isfinite()).flatten(1) if tensor.ndim > 1 else ~tensor.isfinite()[:, None]
        bad = torch.nonzero(rows.any(1)).flatten().tolist()
        paths = [paths[row] for row in bad] or paths
    return [path for path in paths if path]


def _samples(batch: Any) -> Iterator[Any]:
    """Yield the data samples, of all branches; a branch has None for what another one holds."""
    if isinstance(batch, Mapping):
        batch = batch.get('data_samples')
    branches = batch.values() if isinstance(batch, Mapping) else [batch]
    for branch in branches:
        if isinstance(branch, list | tuple):
            yield from (sample for sample in branch if sample is not None)


def _name(sample: Any) -> str:
    info = getattr(sample, 'metainfo', sample)
    info = info if isinstance(info, Mapping) else {}
    for key in ('img_path', 'img_id', 'sample_idx'):
        if info.get(key) is not None:
            return str(info[key]) if key == 'img_path' else f'{key}={info[key]}'
    return ''
