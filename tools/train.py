"""Train with a config of MMDetection, MMSegmentation or MMPretrain.

python tools/train.py configs/demo/faster-rcnn_r18_fpn_sn-all_digits.py
torchrun --nproc_per_node=8 tools/train.py CONFIG --launcher pytorch
"""

import argparse

import _sleeping_threads  # noqa: F401
from mmengine.config import Config

from sn_openmmlab.checkpoints.files.safe_loading import check_resumable, load_safely
from sn_openmmlab.errors import exit_with_sentence
from sn_openmmlab.runs import options
from sn_openmmlab.runs.command_line import (
    add_launcher,
    config_of,
    export_local_rank,
    is_first_of_machine,
    run_parser,
)
from sn_openmmlab.runs.data.check import check_data
from sn_openmmlab.runs.dump import check_dump_config, dump_config
from sn_openmmlab.runs.errors.full_disk import stopping_on_a_full_disk
from sn_openmmlab.runs.errors.leftovers import no_leftovers
from sn_openmmlab.runs.errors.sentences import running
from sn_openmmlab.runs.runner import build_runner
from sn_openmmlab.runs.weights.check import check_start
from sn_openmmlab.runs.weights.files import check_load_from, check_pretrained


def main() -> None:
    parser = run_parser(__doc__.split('\n')[0])
    add_launcher(parser)
    parser.add_argument('--amp', action='store_true', help='automatic mixed precision')
    parser.add_argument(
        '--auto-scale-lr',
        action='store_true',
        help='scale the learning rate by the batch size',
    )
    parser.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        metavar='CHECKPOINT',
        help='resume from this checkpoint, or from the newest whole one in the work folder',
    )
    parser.add_argument(
        '--save-on-signal',
        action='store_true',
        help='on SIGTERM or SIGINT (Ctrl-C) save a checkpoint and end with exit code 143 or 130',
    )
    parser.add_argument(
        '--dump',
        metavar='FILE.py',
        help="write the config with all changes to this file for the toolbox's tools, and end",
    )
    parser.add_argument(
        '--bad-images',
        choices=['stop', 'skip'],
        default='stop',
        help='what to do when an image cannot be read: stop (%(default)s), or take another one',
    )
    args = parser.parse_args()
    export_local_rank(args.local_rank)

    config = config_of(args)
    if args.amp:
        options.use_amp(config)
    if args.auto_scale_lr:
        options.use_scaled_lr(config)
    if args.dump:
        dump(config, args)
        return
    options.set_work_dir(config, args.work_dir)
    options.set_resume(config, args.resume)
    check_load_from(config)
    check_pretrained(config)
    if is_first_of_machine(args.launcher):
        check_data(config, 'train_dataloader', 'val_dataloader')
    options.use_launcher(config, args.launcher)
    load_safely()
    if config.get('resume') and config.get('load_from'):
        check_resumable(config.load_from)
    with no_leftovers(config):
        runner = build_runner(config, args.bad_images == 'skip', args.save_on_signal)
        check_start(runner.model, config)
        # This also builds the loops, the data and the optimizer.
        with running('the training', config), stopping_on_a_full_disk():
            runner.train()


def dump(config: Config, args: argparse.Namespace) -> None:
    """Write the config to the file of ``--dump``, and print what becomes of the norms."""
    check_dump_config(args.dump, config)
    # Without the option, the toolbox's tool names the folder after the written file.
    if args.work_dir:
        options.set_work_dir(config, args.work_dir)
    print(dump_config(config, args.dump))
    print(f'The config is in {args.dump}.')


if __name__ == '__main__':
    exit_with_sentence(main)
