"""Train BN, GN and SN from scratch at small batches; write records, tables and pictures.

python -m studies.small_batch --out docs/small_batch --work-dir work_dirs/small_batch
"""

from studies.experiments.command_line import run_experiment
from studies.experiments.plan import small_batch_runs
from studies.experiments.small_batch import all_tables, draw_figures

if __name__ == '__main__':
    run_experiment(
        __doc__.split('\n')[0],
        lambda _: small_batch_runs(),
        all_tables,
        draw_figures,
    )
