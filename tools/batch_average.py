"""Set the running statistics of a trained model by the paper's batch average.

python tools/batch_average.py CONFIG CHECKPOINT OUT
torchrun --nproc_per_node=8 tools/batch_average.py CONFIG CHECKPOINT OUT --launcher pytorch
"""

import argparse

import _sleeping_threads  # noqa: F401
from mmengine.dist import get_rank
from mmengine.runner import Runner, load_checkpoint
from torch import nn

from sn_openmmlab.checkpoints.files.fetching import fetch_checkpoint
from sn_openmmlab.checkpoints.files.safe_loading import load_safely
from sn_openmmlab.checkpoints.files.writing import check_output, write_checkpoint
from sn_openmmlab.checkpoints.trial_loading import unwrapped
from sn_openmmlab.errors import UsageError, exit_with_sentence
from sn_openmmlab.hooks.norm_check_hook import sync_norms
from sn_openmmlab.inference.averaging import NUM_BATCHES, Averaged, average_over_training
from sn_openmmlab.inference.checkpoint import Moved, record_average, with_statistics
from sn_openmmlab.layers.batch_average import VARIANCES, uses_statistics
from sn_openmmlab.runs import options
from sn_openmmlab.runs.command_line import (
    add_launcher,
    config_of,
    export_local_rank,
    is_first_of_machine,
    run_parser,
)
from sn_openmmlab.runs.data.check import check_data
from sn_openmmlab.runs.errors.sentences import running
from sn_openmmlab.runs.runner import build_runner
from sn_openmmlab.runs.weights.check import check_trained
from sn_openmmlab.runs.weights.files import check_checkpoint


def main() -> None:
    args = _parser().parse_args()
    if args.num_batches < 1:
        raise UsageError(f'--num-batches is {args.num_batches}, but must be at least 1.')
    export_local_rank(args.local_rank)

    config = config_of(args)
    options.set_work_dir(config, args.work_dir)
    check_checkpoint(args.checkpoint)
    check_output(args.out, [args.checkpoint])
    if is_first_of_machine(args.launcher):
        check_data(config, 'train_dataloader')
    options.use_launcher(config, args.launcher)
    load_safely()
    # Nothing is trained, and what they do to a checkpoint is for training.
    config.custom_hooks = []
    runner = build_runner(config)
    check_trained(runner.model, args.checkpoint)
    sync_norms(runner.model, config)
    load_checkpoint(unwrapped(runner.model), args.checkpoint, map_location='cpu')
    # Now that layers are sparse, which may no longer use the batch.
    _check_layers(runner.model, args)
    with running('the averaging', config):
        done = average_over_training(
            runner.model, runner, args.num_batches, args.variance, args.batch_norm
        )
    _check_done(done)
    if get_rank() == 0:
        _write(runner, done, args)


def _parser() -> argparse.ArgumentParser:
    parser = run_parser(__doc__.split('\n')[0])
    add_launcher(parser)
    parser.add_argument('checkpoint', help='the trained weights')
    parser.add_argument('out', help='the checkpoint to write')
    parser.add_argument(
        '--num-batches',
        type=int,
        default=NUM_BATCHES,
        metavar='N',
        help='how many batches of the training data each process takes, at most one epoch '
        '(default: %(default)s)',
    )
    parser.add_argument(
        '--variance',
        choices=VARIANCES,
        default='mean',
        help="mean: the average of the batches' variances, as in the paper (default); pooled: plus "
        "the variance of the batches' means",
    )
    parser.add_argument(
        '--batch-norm', action='store_true', help='also set BatchNorm and BatchRenorm layers'
    )
    return parser


def _check_layers(model: nn.Module, args: argparse.Namespace) -> None:
    if any(uses_statistics(layer, args.batch_norm) for layer in model.modules()):
        return
    kinds = 'SN or BatchNorm' if args.batch_norm else 'SN'
    hint = '' if args.batch_norm else ': for its BatchNorm layers, add --batch-norm'
    raise UsageError(f'no {kinds} layer of the model uses running statistics{hint}.')


def _check_done(done: Averaged) -> None:
    if not done.layers:
        raise UsageError(
            'nothing was written, since no layer got new statistics: either no batch reached one, '
            'or the config holds them all fixed, as frozen_stages and norm_eval do.'
        )


def _write(runner: Runner, done: Averaged, args: argparse.Namespace) -> None:
    checkpoint, moved = with_statistics(
        fetch_checkpoint(args.checkpoint), unwrapped(runner.model), done.layers
    )
    record_average(checkpoint, args.checkpoint, done, args.variance, args.batch_norm)
    write_checkpoint(checkpoint, args.out)
    print(_described(done, moved, args))


def _described(done: Averaged, moved: Moved, args: argparse.Namespace) -> str:
    return (
        f'{args.out} has new running statistics in {len(done.layers)} layers, averaged over '
        f'{done.batches} batches of each process with {done.images} images in all.\n'
        f'The means moved by {moved.means:.3f} standard deviations and the variances by '
        f'{moved.variances:.1%}: medians over {moved.channels} channels.'
    )


if __name__ == '__main__':
    exit_with_sentence(main)
