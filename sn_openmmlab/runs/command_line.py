"""What the command lines of training and testing have in common."""

import argparse
import os
import sys
from collections.abc import Callable

from mmengine.config import DictAction

from sn_openmmlab.errors import UsageError


def run_parser(description: str) -> argparse.ArgumentParser:
    """Return a parser with the arguments that every run of a config takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument('config', help='a config of MMDetection, MMSegmentation or MMPretrain')
    parser.add_argument('--work-dir', help='folder for the results')
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=_Options,
        metavar='KEY=VALUE',
        help='change settings of the config, as in train_cfg.max_epochs=6 key="[a,b]"',
    )
    parser.add_argument(
        '--convert-norms',
        action='store_true',
        help="turn each BatchNorm of the model into SN, by model.type='WithSN'",
    )
    return parser


class _Options(DictAction):
    """mmengine's reading of KEY=VALUE, with a sentence where there is no '='."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: list[str],
        option: str | None = None,
    ) -> None:
        for value in values:
            if '=' not in value:
                parser.error(f'--cfg-options takes KEY=VALUE, not {value!r}.')
        super().__call__(parser, namespace, values, option)


def add_launcher(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a run that may have several processes."""
    parser.add_argument(
        '--launcher',
        choices=['none', 'pytorch', 'slurm', 'mpi'],
        default='none',
        help='what started the processes of a distributed run',
    )
    parser.add_argument(
        '--local_rank', '--local-rank', type=int, default=0, help='set by launchers'
    )


def export_local_rank(rank: int) -> None:
    """Put the rank that an old launcher passed as an argument where mmengine looks for it."""
    os.environ.setdefault('LOCAL_RANK', str(rank))


def exit_with_sentence(main: Callable[[], None]) -> None:
    """Run ``main``; a UsageError becomes one sentence on stderr and exit code 2."""
    try:
        main()
    except UsageError as error:
        print(f'error: {error}', file=sys.stderr)
        sys.exit(2)
