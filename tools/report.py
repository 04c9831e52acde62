"""Gather a finished training in one folder: checkpoint, log, curves, pictures, learned ratios.

python tools/report.py CONFIG --work-dir WORK_DIR
"""

import tempfile
from pathlib import Path

import _sleeping_threads  # noqa: F401

from sn_openmmlab.analysis.report import write_report
from sn_openmmlab.analysis.work_dir import find_runs, newest_checkpoint
from sn_openmmlab.checkpoints.files.safe_loading import load_safely
from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs import config as configs
from sn_openmmlab.runs import runner as runners
from sn_openmmlab.runs.command_line import exit_with_sentence, run_parser
from sn_openmmlab.runs.data.check import check_data
from sn_openmmlab.runs.norms import say_norms
from sn_openmmlab.runs.weights import check_trained


def main() -> None:
    args = run_parser(__doc__.split('\n')[0]).parse_args()
    config = configs.read_config(args.config, args.cfg_options, args.convert_norms)
    configs.set_work_dir(config, args.work_dir)
    runs = find_runs(config.work_dir)
    checkpoint = newest_checkpoint(config.work_dir)
    folder = Path(config.work_dir) / 'report'
    if config.default_scope == 'mmpretrain':
        raise UsageError('the report draws detections and segmentations, not what MMPretrain does.')
    check_data(config, 'val_dataloader')
    load_safely()
    with tempfile.TemporaryDirectory() as config.work_dir:
        runner = runners.build_runner(config)
        say_norms(runner.model, config)
        check_trained(runner.model, str(checkpoint))
        metrics = write_report(runner, checkpoint, runs, folder)
    for name, value in metrics.items():
        print(f'{name}: {value}')
    print(f'Everything is in {folder}:')
    for file in sorted(folder.iterdir()):
        print(f'  {file}')


if __name__ == '__main__':
    exit_with_sentence(main)
