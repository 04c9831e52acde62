"""Train BN, GN and SN from scratch at small batches; write records, tables and figures.

python -m studies.small_batch --out docs/small_batch --work-dir work_dirs/small_batch
"""

from studies.experiments.command_line import run_experiment
from studies.experiments.small_batch import all_tables, draw_figures, prepare

if __name__ == '__main__':
    run_experiment(__doc__, prepare, all_tables, draw_figures)
