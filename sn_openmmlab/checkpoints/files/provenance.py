"""Where a converted checkpoint came from, as it says itself."""

import hashlib
import os
from collections.abc import Iterable
from typing import Any

from sn_openmmlab import __version__

_CHUNK = 1 << 20


def provenance(files: Iterable[str | os.PathLike], layout: str) -> dict[str, Any]:
    """Return what a converted checkpoint records of itself in its ``meta``.

    Args:
        files: those that it was made from.
        layout: the name of the layout that they had.
    """
    return {
        'sources': [{'file': os.path.basename(file), 'sha256': _sha256(file)} for file in files],
        'layout': layout,
        'converter': f'sn_openmmlab {__version__}',
    }


def _sha256(path: str | os.PathLike) -> str:
    digest = hashlib.sha256()
    with open(path, 'rb') as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
