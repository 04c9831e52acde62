"""Train by a config of MMDetection, MMSegmentation or MMPretrain.

python tools/train.py configs/demo/faster-rcnn_r18_fpn_sn-all_digits.py
torchrun --nproc_per_node=8 tools/train.py CONFIG --launcher pytorch
"""

import _sleeping_threads  # noqa: F401

from sn_openmmlab.checkpoints.files.safe_loading import check_resumable, load_safely
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
from sn_openmmlab.runs.weights import check_start


def main() -> None:
    parser = run_parser(__doc__.split('\n')[0])
    add_launcher(parser)
    parser.add_argument('--amp', action='store_true', help='automatic mixed precision')
    parser.add_argument(
        '--auto-scale-lr', action='store_true', help='scale the learning rate by the total batch'
    )
    parser.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        metavar='CHECKPOINT',
        help='continue from this checkpoint, or from the newest in the work folder',
    )
    args = parser.parse_args()
    export_local_rank(args.local_rank)

    config = configs.read_config(args.config, args.cfg_options, args.convert_norms)
    configs.set_work_dir(config, args.work_dir)
    if args.amp:
        runners.use_amp(config)
    if args.auto_scale_lr:
        runners.use_scaled_lr(config)
    runners.set_resume(config, args.resume)
    configs.check_load_from(config)
    configs.check_pretrained(config)
    check_data(config, 'train_dataloader', 'val_dataloader')
    configs.use_launcher(config, args.launcher)
    load_safely()
    if config.get('resume') and config.get('load_from'):
        check_resumable(config.load_from)
    runner = runners.build_runner(config)
    check_start(runner.model, config)
    # The loops, the data and the optimizer are built there.
    with building(f'what {config.filename} describes', REGISTRIES):
        runner.train()


if __name__ == '__main__':
    exit_with_sentence(main)
