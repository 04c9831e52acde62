"""Train norms on CIFAR-10 over few and many images per GPU; write records, tables and figures.

python -m studies.claims --out docs/claims --work-dir work_dirs/claims
"""

from studies.experiments.claims import all_tables, draw_figures
from studies.experiments.claims_runs import prepare
from studies.experiments.command_line import run_experiment

if __name__ == '__main__':
    run_experiment(__doc__, prepare, all_tables, draw_figures)
