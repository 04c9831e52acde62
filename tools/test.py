"""Evaluate a checkpoint with a config of MMDetection, MMSegmentation or MMPretrain.

python tools/test.py CONFIG CHECKPOINT
"""

import _sleeping_threads  # noqa: F401

from sn_openmmlab.checkpoints.files.safe_loading import load_safely
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
from sn_openmmlab.runs.errors.leftovers import no_leftovers
from sn_openmmlab.runs.errors.sentences import running
from sn_openmmlab.runs.runner import build_runner, dump_predictions
from sn_openmmlab.runs.weights.check import check_trained
from sn_openmmlab.runs.weights.files import check_checkpoint


def main() -> None:
    parser = run_parser(__doc__.split('\n')[0])
    add_launcher(parser)
    parser.add_argument('checkpoint', help='the weights to evaluate')
    parser.add_argument('--out', metavar='FILE.pkl', help='write the predictions to this file')
    parser.add_argument(
        '--show-dir', metavar='FOLDER', help='draw the predictions into this folder'
    )
    parser.add_argument('--tta', action='store_true', help='test with augmentation')
    args = parser.parse_args()
    export_local_rank(args.local_rank)

    config = config_of(args)
    options.set_work_dir(config, args.work_dir)
    check_checkpoint(args.checkpoint)
    config.load_from = args.checkpoint
    if args.out:
        options.check_dump(args.out)
    if args.show_dir:
        options.draw_predictions(config, args.show_dir)
    if args.tta:
        options.use_test_time_augmentation(config)
    if is_first_of_machine(args.launcher):
        check_data(config, 'test_dataloader')
    options.use_launcher(config, args.launcher)
    load_safely()
    with no_leftovers(config):
        runner = build_runner(config)
        check_trained(runner.model, args.checkpoint)
        if args.out:
            dump_predictions(runner, args.out)
        # This also builds the loop and the data.
        with running('the test', config):
            runner.test()


if __name__ == '__main__':
    exit_with_sentence(main)
