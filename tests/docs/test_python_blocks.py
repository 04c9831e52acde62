"""The Python blocks of the pages run."""

from pathlib import Path

import torch
from torch import nn


def test_blocks_run(python_blocks: dict[Path, list[str]]) -> None:
    assert len(python_blocks) > 5
    for page, texts in python_blocks.items():
        names: dict[str, object] = {}
        for text in texts:
            # Where a page speaks of the reader's model and images.
            if not isinstance(names.get('model'), nn.Module):
                names['model'] = nn.Sequential(nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32))
            names.setdefault('images', torch.randn(4, 3, 16, 16))
            exec(compile(text, str(page), 'exec'), names)
