"""Make a trained model sparse: each SN layer uses the scopes with the largest ratios alone.

python tools/sparsify.py CONFIG CHECKPOINT OUT
python tools/sparsify.py CONFIG CHECKPOINT OUT.pth --export
"""

import argparse

import _sleeping_threads  # noqa: F401
from torch import nn

from sn_openmmlab.analysis.choices import ratio_table
from sn_openmmlab.analysis.importance import importance_ratios
from sn_openmmlab.checkpoints.files.safe_loading import load_safely, read_checkpoint
from sn_openmmlab.checkpoints.files.writing import check_output, write_checkpoint
from sn_openmmlab.errors import UsageError, exit_with_sentence
from sn_openmmlab.inference.export.export import check_export_output, export, write_export
from sn_openmmlab.inference.sparse_checkpoint import is_sparse, make_sparse, with_choices
from sn_openmmlab.inference.trained_model import build_trained
from sn_openmmlab.runs.command_line import config_of, config_parser
from sn_openmmlab.runs.weights.files import check_checkpoint


def main() -> None:
    args = _parser().parse_args()
    config = config_of(args)
    check_checkpoint(args.checkpoint)
    inputs = [args.checkpoint, config.filename]
    if args.export:
        check_export_output(args.out, inputs)
    else:
        check_output(args.out, inputs)
    load_safely()
    model = build_trained(config, args.checkpoint)
    if is_sparse(model) and not args.export:
        raise UsageError(
            f'{args.checkpoint} is sparse already: use it as it is, or export it with --export.'
        )
    before = importance_ratios(model)
    make_sparse(model, args.checkpoint)
    checkpoint = read_checkpoint(args.checkpoint)
    if args.export:
        exported = export(model, config)
        write_export(exported, checkpoint, args.checkpoint, args.out)
        print(exported.table(model))
        print(_described(args.out, exported.difference))
    else:
        write_checkpoint(with_choices(checkpoint, model, args.checkpoint), args.out)
        print(ratio_table(before, importance_ratios(model)))
        print(f'{args.out} is sparse in {_layers(model)} SN layers.')


def _parser() -> argparse.ArgumentParser:
    parser = config_parser(__doc__.split('\n')[0])
    parser.add_argument('checkpoint', help='the trained weights')
    parser.add_argument('out', help='the checkpoint to write')
    parser.add_argument(
        '--export',
        action='store_true',
        help="turn the layers into torch's own norms, fold BatchNorm into the convolutions, and "
        'write a config beside OUT that the toolbox reads without this package',
    )
    return parser


def _layers(model: nn.Module) -> int:
    return sum(1 for part in model.modules() if getattr(part, 'is_sparse', False))


def _described(out: str, difference: float) -> str:
    config = f'{out.removesuffix(".pth")}.py'
    return (
        f'{out} and {config} are the exported model; keep exported_norms.py beside them. On a '
        f'random image it differs from the sparse model by {difference:.1e} of the largest value.'
    )


if __name__ == '__main__':
    exit_with_sentence(main)
