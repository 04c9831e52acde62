"""Fine-tune detectors with SN from a BatchNorm classifier; write records, tables and figures.

python -m studies.from_batch_norm --out docs/from_batch_norm --work-dir work_dirs/from_batch_norm
"""

from studies.experiments.command_line import run_experiment
from studies.experiments.from_batch_norm import all_tables, draw_figures, prepare

if __name__ == '__main__':
    run_experiment(__doc__, prepare, all_tables, draw_figures)
