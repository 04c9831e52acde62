"""The arguments that the command lines of training, testing, report and predictions share."""

import argparse
import os

from mmengine.config import Config

from sn_openmmlab.errors import UsageError
from sn_openmmlab.ops.environment import check_environment
from sn_openmmlab.runs.cfg_options import CfgOptions
from sn_openmmlab.runs.config import read_config
from sn_openmmlab.runs.norm_swap import read_norm


def run_parser(description: str) -> argparse.ArgumentParser:
    """Return a parser with the arguments that every run of a config takes."""
    parser = config_parser(description)
    parser.add_argument('--work-dir', help='folder for the results')
    return parser


def config_parser(description: str) -> argparse.ArgumentParser:
    """Return a parser with the arguments that say which model to build."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        'config',
        help='a config of MMDetection, MMSegmentation or MMPretrain: a file, or a name in the zoo '
        'such as mmdet::retinanet/retinanet_r50_fpn_1x_coco.py',
    )
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=CfgOptions,
        metavar='KEY=VALUE',
        help='change settings of the config, as in train_cfg.max_epochs=6 key="[a,b]"',
    )
    parser.add_argument(
        '--norm',
        help='replace the BN, SyncBN, GN and SN of the model by this norm: SN, SyncSN, GN, BN, or '
        "one with options, as in \"dict(type='SN', scopes=('in', 'ln'))\"",
    )
    parser.add_argument(
        '--norm-in',
        nargs='+',
        metavar='PART',
        help='replace them only in these parts of the model, such as backbone neck',
    )
    return parser


def config_of(args: argparse.Namespace) -> Config:
    """Read the config that the arguments of `run_parser` name, with their changes.

    Raises:
        UsageError: ``--norm`` is no norm, ``--norm-in`` is without it, an environment variable of
            this package means nothing, or see `read_config`.
    """
    check_environment()
    if args.norm_in and args.norm is None:
        raise UsageError('--norm-in needs the norm: add --norm SN.')
    norm = None if args.norm is None else read_norm(args.norm)
    return read_config(args.config, args.cfg_options, norm, args.norm_in)


def add_launcher(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a run in several processes."""
    parser.add_argument(
        '--launcher',
        choices=['none', 'pytorch', 'slurm', 'mpi'],
        default='none',
        help='the launcher that started the processes of a distributed run',
    )
    parser.add_argument(
        '--local_rank', '--local-rank', type=int, default=0, help='set by launchers'
    )


def export_local_rank(rank: int) -> None:
    """Export the rank that an old launcher passed as an argument, as mmengine expects it."""
    os.environ.setdefault('LOCAL_RANK', str(rank))


def is_first_of_machine(launcher: str) -> bool:
    """Return whether this process checks the data for all that torchrun started on this machine.

    Torchrun ends the others when it fails. Other launchers may not, so there each one checks.
    """
    return launcher != 'pytorch' or os.environ.get('LOCAL_RANK', '0') == '0'
