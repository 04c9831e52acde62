"""Compare batch average and moving averages over trainings; write records, tables and figures.

python -m studies.batch_average --out docs/batch_average --work-dir work_dirs/claims
"""

from studies.experiments.batch_average import all_tables, draw_figures, prepare
from studies.experiments.command_line import run_experiment
from studies.experiments.epoch_averages import read_averages

if __name__ == '__main__':
    run_experiment(__doc__, prepare, all_tables, draw_figures, read_averages)
