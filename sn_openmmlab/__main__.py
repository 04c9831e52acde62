"""``python -m sn_openmmlab``: print the version, and which backends can run here."""

import torch

import sn_openmmlab
from sn_openmmlab.ops.backends import availability


def main() -> None:
    """Print one line per backend, the fastest last; with the reason where it cannot run."""
    print(f'sn_openmmlab {sn_openmmlab.__version__}, torch {torch.__version__}')
    for name, reason in availability().items():
        print(f'{name:8}{"available" if reason is None else f"not available: {reason}"}')


if __name__ == '__main__':
    main()
