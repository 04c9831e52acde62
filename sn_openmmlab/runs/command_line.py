"""What the command lines of training and testing have in common."""

import argparse
import os
from typing import Any

from mmengine.config import DictAction


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
    """mmengine's reading of KEY=VALUE, with a sentence where it would read something else."""

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
            key, _, given = value.partition('=')
            if given.lstrip('\'"').startswith(('dict(', '{')):
                parser.error(
                    f'--cfg-options cannot read a dict, as {key} is given: set its keys one by '
                    f'one, as {key}.type=SN.'
                )
        super().__call__(parser, namespace, values, option)

    @staticmethod
    def _parse_iterable(value: str) -> Any:
        # mmengine takes out every space, those of a path or a name too.
        bare = value.strip('\'"')
        if ' ' in bare and not any(mark in bare for mark in ',()[]'):
            return bare
        return DictAction._parse_iterable(value)


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
