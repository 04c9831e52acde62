"""Fine-tune detectors with SN from a BatchNorm classifier; write records, tables and pictures.

python tools/from_batch_norm.py --out docs/from_batch_norm --work-dir work_dirs/from_batch_norm
"""

from pathlib import Path

import _sleeping_threads  # noqa: F401

from sn_openmmlab.experiments.command_line import run_experiment
from sn_openmmlab.experiments.from_batch_norm import all_tables, draw_figures, prepare

if __name__ == '__main__':
    run_experiment(
        __doc__.split('\n')[0],
        Path(__file__).with_name('train.py'),
        prepare,
        all_tables,
        draw_figures,
    )
