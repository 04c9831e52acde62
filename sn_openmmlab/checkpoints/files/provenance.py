"""The note in a converted checkpoint that says where it came from."""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sn_openmmlab import __version__

_CHUNK = 1 << 20


def provenance(
    files: Iterable[str | os.PathLike], layout: str, scopes: Sequence[str] | None
) -> dict[str, Any]:
    """Return the note for the `meta` of a converted checkpoint.

    Args:
        files: The files that it was made from.
        layout: The name of the layout that they had.
        scopes: The scopes of its λ in their order, or None if they are not known.
    """
    return {
        'sources': [{'file': os.path.basename(file), 'sha256': _sha256(file)} for file in files],
        'layout': layout,
        'converter': f'sn_openmmlab {__version__}',
        **({'scopes': list(scopes)} if scopes else {}),
    }


def recorded_scopes(checkpoint: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the scopes of λ in their order, or None if the note does not say them."""
    scopes = recorded(checkpoint, 'scopes')
    known = isinstance(scopes, list) and all(isinstance(scope, str) for scope in scopes)
    return tuple(scopes) if known else None


def recorded(checkpoint: Mapping[str, Any], key: str) -> Any:
    """Return an entry of the note, or None if there is none."""
    meta = checkpoint.get('meta')
    return meta.get(key) if isinstance(meta, Mapping) and 'converter' in meta else None


def _sha256(path: str | os.PathLike) -> str:
    digest = hashlib.sha256()
    with open(path, 'rb') as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
