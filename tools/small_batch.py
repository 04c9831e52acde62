"""Train BN, GN and SN from scratch at small batches; write records, tables and pictures.

python tools/small_batch.py --out docs/small_batch --work-dir work_dirs/small_batch
"""

from pathlib import Path

import _sleeping_threads  # noqa: F401

from sn_openmmlab.experiments.command_line import run_experiment
from sn_openmmlab.experiments.plan import small_batch_runs
from sn_openmmlab.experiments.small_batch import all_tables, draw_figures

if __name__ == '__main__':
    run_experiment(
        __doc__.split('\n')[0],
        Path(__file__).with_name('train.py'),
        lambda _: small_batch_runs(),
        all_tables,
        draw_figures,
    )
