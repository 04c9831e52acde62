"""Predict on images with a model of MMDetection, MMSegmentation or MMPretrain.

python tools/predict.py CONFIG CHECKPOINT IMAGE_OR_FOLDER… --out FOLDER
"""

from pathlib import Path

import _sleeping_threads  # noqa: F401
from mmengine.device import get_device

from sn_openmmlab.checkpoints.files.safe_loading import load_safely
from sn_openmmlab.errors import exit_with_sentence
from sn_openmmlab.prediction.images import check_images, find_images
from sn_openmmlab.prediction.output import check_output_folder
from sn_openmmlab.prediction.run import SCORE_THR, build_predictor, check_device, predict_images
from sn_openmmlab.runs.command_line import config_of, config_parser
from sn_openmmlab.runs.weights.files import check_checkpoint


def main() -> None:
    parser = config_parser(__doc__.split('\n')[0])
    parser.add_argument('checkpoint', help='the trained weights')
    parser.add_argument(
        'images', nargs='+', metavar='IMAGE_OR_FOLDER', help='an image, or a folder of images'
    )
    parser.add_argument(
        '--out', required=True, type=Path, metavar='FOLDER', help='folder for the predictions'
    )
    parser.add_argument(
        '--score-thr',
        type=float,
        metavar='SCORE',
        help=f'draw detections with a higher score only (default: {SCORE_THR})',
    )
    parser.add_argument(
        '--device', default=get_device(), help='where the model runs (default: %(default)s)'
    )
    args = parser.parse_args()

    config = config_of(args)
    check_checkpoint(args.checkpoint)
    check_device(args.device)
    images = find_images(args.images)
    check_output_folder(args.out, images)
    check_images(images)
    load_safely()
    predict = build_predictor(config, args.checkpoint, args.device, args.score_thr)
    predict_images(predict, images, args.out)
    print(f'{args.out} holds {len(images)} predictions: pictures in vis/, JSON files in preds/.')


if __name__ == '__main__':
    exit_with_sentence(main)
