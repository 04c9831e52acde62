"""Make the SN of trained networks sparse and fine-tune them; write records, tables and figures.

python -m studies.sparse --out docs/sparse --work-dir work_dirs/claims
"""

from studies.experiments.command_line import run_experiment
from studies.experiments.sparse import all_tables, draw_figures, prepare

if __name__ == '__main__':
    run_experiment(__doc__, prepare, all_tables, draw_figures)
