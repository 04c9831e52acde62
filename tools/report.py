"""Gather a finished training in a folder: checkpoint, log, curves, predictions, learned ratios.

python tools/report.py CONFIG --work-dir WORK_DIR
"""

import tempfile
from pathlib import Path

import _sleeping_threads  # noqa: F401

from sn_openmmlab.analysis.report import write_report
from sn_openmmlab.analysis.work_dir import find_runs, newest_checkpoint
from sn_openmmlab.checkpoints.files.safe_loading import load_safely
from sn_openmmlab.errors import exit_with_sentence
from sn_openmmlab.hooks.norm_check_hook import log_norms
from sn_openmmlab.runs import options
from sn_openmmlab.runs.command_line import config_of, run_parser
from sn_openmmlab.runs.data.check import check_data
from sn_openmmlab.runs.runner import build_runner
from sn_openmmlab.runs.weights.check import check_trained


def main() -> None:
    args = run_parser(__doc__.split('\n')[0]).parse_args()
    config = config_of(args)
    options.set_work_dir(config, args.work_dir)
    runs = find_runs(config.work_dir)
    checkpoint = newest_checkpoint(config.work_dir)
    folder = Path(config.work_dir) / 'report'
    check_data(config, 'val_dataloader')
    load_safely()
    with tempfile.TemporaryDirectory() as config.work_dir:
        runner = build_runner(config)
        log_norms(runner.model, config)
        check_trained(runner.model, str(checkpoint))
        metrics = write_report(runner, checkpoint, runs, folder)
    for name, value in metrics.items():
        print(f'{name}: {value}')
    print(f'Everything is in {folder}:')
    for file in sorted(folder.iterdir()):
        print(f'  {file}')


if __name__ == '__main__':
    exit_with_sentence(main)
