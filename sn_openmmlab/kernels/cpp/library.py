"""Load the compiled operators, `torch.ops.sn_openmmlab`."""

import hashlib
import re
from functools import cache
from pathlib import Path

import torch

FOLDER = Path(__file__).parent
SOURCES = FOLDER / 'csrc'
SUFFIXES = ('.cpp', '.h', '.inc')


def library_name(torch_version: str) -> str:
    """Return the file name of a build for a version of torch, without its ending.

    A build fits no other version: torch's C++ interface changes with each. Nor does it fit other
    sources: in an editable install they may be newer than what was compiled from them.
    """
    sources = hashlib.sha256()
    for file in sorted(f for f in SOURCES.glob('*') if f.suffix in SUFFIXES):
        sources.update(f'{file.name}\0'.encode() + file.read_bytes())
    version = re.sub(r'[^0-9a-zA-Z]', '_', torch_version)
    return f'_torch_{version}_{sources.hexdigest()[:8]}'


@cache
def why_missing() -> str | None:
    """Load the operators, once; return None, or why there are none."""
    file = FOLDER / f'{library_name(torch.__version__)}.so'
    if not file.exists():
        return _why_not_built()
    try:
        torch.ops.load_library(file)
    except OSError as error:
        return f'the C++ kernels cannot be loaded ({error})'
    # Registers what torch has to know of the operators besides their code.
    from sn_openmmlab.kernels.cpp import fakes  # noqa: F401

    return None


def _why_not_built() -> str:
    if list(FOLDER.glob('_torch_*.so')):
        return (
            f'the C++ kernels were built for another torch than {torch.__version__}, or from '
            'other sources: install sn_openmmlab again'
        )
    return (
        'the C++ kernels were not built: install sn_openmmlab with --no-build-isolation where '
        'torch and a C++ compiler are'
    )
