"""Evaluate a checkpoint by a config of MMDetection, MMSegmentation or MMPretrain.

python tools/test.py CONFIG CHECKPOINT
"""

import _sleeping_threads  # noqa: F401

from sn_openmmlab.checkpoints.files.safe_loading import load_safely
from sn_openmmlab.runs import config as configs
from sn_openmmlab.runs import runner as runners
from sn_openmmlab.runs.build_faults import REGISTRIES, building
from sn_openmmlab.runs.command_line import (
    add_launcher,
    exit_with_sentence,
    export_local_rank,
    run_parser,
)
from sn_openmmlab.runs.data.check import check_data
from sn_openmmlab.runs.weights import check_trained


def main() -> None:
    parser = run_parser(__doc__.split('\n')[0])
    add_launcher(parser)
    parser.add_argument('checkpoint', help='the weights to evaluate')
    parser.add_argument('--out', metavar='FILE.pkl', help='write the predictions to this file')
    parser.add_argument(
        '--show-dir', metavar='FOLDER', help='draw the predictions into this folder'
    )
    parser.add_argument('--tta', action='store_true', help='test-time augmentation of the config')
    args = parser.parse_args()
    export_local_rank(args.local_rank)

    config = configs.read_config(args.config, args.cfg_options, args.convert_norms)
    configs.set_work_dir(config, args.work_dir)
    configs.check_checkpoint(args.checkpoint)
    config.load_from = args.checkpoint
    if args.out:
        runners.check_dump(args.out)
    if args.show_dir:
        runners.draw_predictions(config, args.show_dir)
    if args.tta:
        runners.use_test_time_augmentation(config)
    check_data(config, 'test_dataloader')
    configs.use_launcher(config, args.launcher)
    load_safely()
    runner = runners.build_runner(config)
    check_trained(runner.model, args.checkpoint)
    if args.out:
        runners.dump_predictions(runner, args.out)
    # The loop and the data are built there.
    with building(f'what {config.filename} describes', REGISTRIES):
        runner.test()


if __name__ == '__main__':
    exit_with_sentence(main)
