"""Pretrain a classifier on CIFAR-10 and start detectors from it; write records, tables, figures.

python -m studies.from_cifar10 --out docs/from_cifar10 --work-dir work_dirs/from_cifar10
"""

from studies.experiments.command_line import run_experiment
from studies.experiments.from_cifar10 import all_tables, draw_figures, prepare

if __name__ == '__main__':
    run_experiment(__doc__, prepare, all_tables, draw_figures)
