"""Compare batch average and moving averages over trainings; write records, tables and figures.

python -m studies.batch_average --out docs/batch_average --work-dir work_dirs/batch_average
"""

from studies.experiments.batch_average import all_tables, draw_figures, prepare
from studies.experiments.command_line import run_experiment

if __name__ == '__main__':
    run_experiment(__doc__, prepare, all_tables, draw_figures)
