"""Show what SN learned: the importance ratios of checkpoints and runs as a table and as figures.

python tools/plot_importance.py CHECKPOINT_OR_RUN… --out FOLDER
"""

import argparse
from pathlib import Path

import _sleeping_threads  # noqa: F401

from sn_openmmlab.analysis.ratio_report import check_folder, write_ratio_report
from sn_openmmlab.analysis.ratio_sources import open_sources
from sn_openmmlab.errors import exit_with_sentence


def main() -> None:
    args = _parser().parse_args()
    check_folder(args.out)
    sources = open_sources(args.sources, args.labels)
    for file in write_ratio_report(sources, args.out):
        print(file)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument(
        'sources',
        nargs='+',
        type=Path,
        metavar='CHECKPOINT_OR_RUN',
        help='a checkpoint file, or the work folder of a training',
    )
    parser.add_argument('--out', required=True, type=Path, help='folder for the table and figures')
    parser.add_argument(
        '--labels', nargs='+', metavar='LABEL', help='what to call each in the figures, in order'
    )
    return parser


if __name__ == '__main__':
    exit_with_sentence(main)
