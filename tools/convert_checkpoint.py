"""Convert a checkpoint to one with SN for the toolboxes, or check that it fits its model.

python tools/convert_checkpoint.py IN OUT
python tools/convert_checkpoint.py ENCODER DECODER OUT
python tools/convert_checkpoint.py --verify OUT
"""

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

import _sleeping_threads  # noqa: F401

from sn_openmmlab.checkpoints.convert import PlannedFile, converted_checkpoint, plan_files
from sn_openmmlab.checkpoints.files.writing import check_output, write_checkpoint
from sn_openmmlab.checkpoints.names import few
from sn_openmmlab.checkpoints.plan_table import print_table
from sn_openmmlab.checkpoints.plans.batch_norm import BatchNormPlan
from sn_openmmlab.errors import UsageError, exit_with_sentence
from sn_openmmlab.layers.convert.from_batch_norm import BATCH_RATIO
from sn_openmmlab.runs.config import read_config
from sn_openmmlab.runs.fitting import fit_to_images
from sn_openmmlab.runs.verify import verify

CONFIGS = Path(__file__).resolve().parents[1] / 'configs'

# Windows has no SIGHUP.
_ENDING = [ending for ending in signal.Signals if ending.name in ('SIGINT', 'SIGTERM', 'SIGHUP')]


def main() -> None:
    parser = _parser()
    args = parser.parse_args()
    _check_arguments(parser, args)
    if args.verify:
        title = verify(args.verify, CONFIGS)
        print(f'{args.verify} fits {title}: no key is missing, none is unexpected.')
    else:
        _convert(args)


def _convert(args: argparse.Namespace) -> None:
    *inputs, output = args.files
    check_output(output, inputs)
    fold = args.first_stage and args.first_stage == 'fold'
    planned = plan_files(inputs, args.keep_classifier, args.batch_ratio, fold)
    for file in planned:
        print(f'{file.path}: {file.plan.title}.')
    if args.dry_run:
        print_table([file.plan for file in planned])
        for file in planned:
            file.check()
        return
    checkpoint = converted_checkpoint(planned)
    if args.fit_to:
        _fit(checkpoint, planned, args)
    write_checkpoint(checkpoint, output)
    _report(planned, checkpoint, output)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__.split('\n')[0],
        usage='%(prog)s [--dry-run] [--keep-classifier] [--batch-ratio RATIO]\n'
        '                             [--fit-to FOLDER --config CONFIG]\n'
        '                             [--first-stage fold|keep] IN OUT\n'
        '       %(prog)s [--dry-run] ENCODER DECODER OUT\n'
        '       %(prog)s --verify FILE',
    )
    parser.add_argument(
        'files',
        nargs='*',
        type=os.path.expanduser,
        metavar='FILE',
        help='an ImageNet checkpoint or a trained detector of the authors, a network with '
        "BatchNorm, or the encoder and the decoder of the authors' ADE20K segmenter; then the file "
        'to write',
    )
    parser.add_argument(
        '--dry-run', action='store_true', help='show what each weight becomes, and write nothing'
    )
    parser.add_argument(
        '--keep-classifier',
        action='store_true',
        help='keep the classifier, and use the names of MMPretrain: backbone.* and head.fc.*',
    )
    parser.add_argument(
        '--batch-ratio',
        type=float,
        metavar='RATIO',
        help=f'for a file with BatchNorm: the importance ratio at which bn starts, above 0 and at '
        f'most 1 (default: {BATCH_RATIO})',
    )
    parser.add_argument(
        '--fit-to',
        type=os.path.expanduser,
        metavar='FOLDER',
        help='for a file with BatchNorm: fit the SN layers to the output of BatchNorm on the '
        'images in this folder',
    )
    parser.add_argument(
        '--config', metavar='CONFIG', help='the config that OUT is for; --fit-to runs its backbone'
    )
    parser.add_argument(
        '--first-stage',
        choices=('fold', 'keep'),
        help='for a trained detector of the authors: fold bn into in in the first stage, whose SN '
        'their code leaves in training mode, or keep it (default: fold where they froze that '
        'stage)',
    )
    parser.add_argument(
        '--verify',
        type=os.path.expanduser,
        metavar='FILE',
        help='check that a converted file fits its model',
    )
    return parser


def _check_arguments(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Exit with a message unless the arguments fit together."""
    settings = (args.files, args.dry_run, args.keep_classifier, args.fit_to)
    alone = not any(settings) and args.batch_ratio is None and args.first_stage is None
    if bool(args.fit_to) != bool(args.config):
        parser.error('--fit-to FOLDER and --config CONFIG go together.')
    if args.fit_to and args.dry_run:
        parser.error('--dry-run fits nothing: leave out --fit-to or --dry-run.')
    if args.verify and not alone:
        parser.error('--verify takes one file and nothing else.')
    if not args.verify and len(args.files) not in (2, 3):
        parser.error(
            f'give IN OUT or ENCODER DECODER OUT: two or three files, not {len(args.files)}.'
        )
    if args.keep_classifier and len(args.files) == 3:
        parser.error('--keep-classifier is for one file: a segmenter has no classifier.')
    if args.batch_ratio is not None and len(args.files) == 3:
        parser.error('--batch-ratio is for one file with BatchNorm: leave it out.')
    if args.first_stage is not None and len(args.files) == 3:
        parser.error('--first-stage is for one file with a detector: leave it out.')


def _fit(checkpoint: dict, planned: list[PlannedFile], args: argparse.Namespace) -> None:
    if not isinstance(planned[0].plan, BatchNormPlan):
        raise UsageError('--fit-to is for a file with BatchNorm: leave it out.')
    config = read_config(args.config)
    state, images = fit_to_images(checkpoint['state_dict'], config, args.fit_to)
    checkpoint['state_dict'] = state
    checkpoint['meta']['fitted_to'] = images
    print(f'Fitted its SN layers to {images} images of {args.fit_to}.')


def _report(planned: list[PlannedFile], checkpoint: dict, output: str) -> None:
    dropped = [name for file in planned for name in file.plan.dropped]
    if dropped:
        print(f'Dropped {few(dropped)}, which a backbone does not have.')
    if 'batch_ratio' in checkpoint['meta']:
        print(f'In its SN layers, bn starts at a ratio of {checkpoint["meta"]["batch_ratio"]:g}.')
    if 'folded' in checkpoint['meta'].get('first_stage', ''):
        print('In its first stage, bn is folded into in: --first-stage keep would leave it.')
    print(f'Wrote {len(checkpoint["state_dict"])} weights to {output}.')


def _leave(number: int, _: object) -> NoReturn:
    # A closed terminal signals more than once, which must not interrupt the clean-up.
    for ending in _ENDING:
        signal.signal(ending, lambda *_: None)
    sys.exit(128 + number)


if __name__ == '__main__':
    # Otherwise a run that is ended would leave an unfinished file or a traceback.
    for ending in _ENDING:
        # Such as SIGHUP under `nohup`.
        if signal.getsignal(ending) is not signal.SIG_IGN:
            signal.signal(ending, _leave)
    # The name of a file may be any bytes.
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors='backslashreplace')
    # Otherwise `| head` would end it with a traceback. Windows has no such signal.
    if hasattr(signal, 'SIGPIPE'):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    exit_with_sentence(main)
