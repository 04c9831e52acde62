"""The arguments of the benchmarks on the CPU."""

import argparse
from pathlib import Path

import torch

from studies.presentation.output import make_folder


def read_arguments(description: str, files: str) -> argparse.Namespace:
    """Read `--out` and `--threads`, make the folder and set the number of threads.

    Args:
        description: of the command; its first line is shown by `--help`.
        files: the names of the files that it writes, for `--help`.

    Raises:
        UsageError: the folder cannot be written.
    """
    parser = argparse.ArgumentParser(description=description.split('\n')[0])
    parser.add_argument('--out', type=Path, required=True, help=f'the folder of {files}')
    parser.add_argument('--threads', type=int, default=2, help='threads of the CPU (%(default)s)')
    args = parser.parse_args()
    make_folder(args.out)
    torch.set_num_threads(args.threads)
    return args
