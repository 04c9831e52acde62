"""Train SN, BN and GN on CIFAR-10, over 16 images and over 2; write records, tables and figures.

python -m studies.cifar10 --out docs/cifar10 --work-dir work_dirs/cifar10
"""

from studies.experiments.cifar10 import all_tables, draw_figures, prepare
from studies.experiments.command_line import run_experiment

if __name__ == '__main__':
    run_experiment(__doc__, prepare, all_tables, draw_figures)
