"""Exporting a sparse model: its config, its checkpoint and the proof that both give the same."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope
from rich import box
from rich.table import Table
from torch import Tensor, nn

from sn_openmmlab import __version__
from sn_openmmlab.analysis.choices import as_text, scope_choices
from sn_openmmlab.checkpoints.files.writing import check_output, write_checkpoint, write_file
from sn_openmmlab.errors import UsageError
from sn_openmmlab.inference.export.config import (
    FIRST_LINE,
    MODULE,
    config_text,
    module_text,
)
from sn_openmmlab.inference.export.layers import ExportedLayer, exported_layers
from sn_openmmlab.inference.export.trial import Trial, features, try_model

# Of the largest absolute value of an output. The folding rounds weights once more.
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Export:
    """An exported model, ready to be written.

    Attributes:
        layers: what became of each SN layer.
        config: the text of the config.
        state: the weights.
        difference: the largest difference from the sparse model, as a share of the largest value.
    """

    layers: Sequence[ExportedLayer]
    config: str
    state: dict[str, Tensor]
    difference: float

    def table(self, model: nn.Module) -> str:
        """Return a table as text: what each SN layer of the sparse model chose and became."""
        chosen = {choice.name: choice for choice in scope_choices(model)}
        table = Table('layer', 'means', 'variances', 'becomes', 'why', box=box.SIMPLE_HEAD)
        for layer in self.layers:
            if choice := chosen.get(layer.name):
                scopes = (' '.join(choice.means), ' '.join(choice.variances))
                table.add_row(layer.name, *scopes, layer.becomes, layer.reason)
        return as_text(table)


def check_export_output(out: str | os.PathLike, inputs: Sequence[str]) -> None:
    """Raise UsageError unless the files of an export can be written.

    Args:
        out: the checkpoint to write; the config gets its name with the suffix `.py`.
        inputs: the files that are read.
    """
    if Path(out).suffix != '.pth':
        raise UsageError(f'OUT must name a .pth file with --export, not {out}.')
    config, module = Path(out).with_suffix('.py'), Path(out).with_name(f'{MODULE}.py')
    if Path(out).stem == MODULE:
        raise UsageError(f'{config} is for another file: rename OUT.')
    for file in (Path(out), config, module):
        check_output(file, inputs)
    for file, first in ((config, FIRST_LINE), (module, module_text().split('\n')[0])):
        if file.is_file() and not file.read_bytes().startswith(first.encode()):
            raise UsageError(
                f'{file} was not written by this tool and would be overwritten: name OUT in '
                'another folder.'
            )


@torch.no_grad()
def export(model: nn.Module, config: Config) -> Export:
    """Export a sparse model whose config has SN.

    Args:
        model: sparse, in evaluation mode, on the CPU.
        config: that it was built from.

    Raises:
        UsageError: the sparse model gives values that are not finite, or the exported one others.
    """
    scope = config.default_scope
    trial = try_model(model, scope)
    layers = exported_layers(model, trial)
    state = _state(model, layers)
    text = config_text(config, layers)
    built = build_exported(text, state, scope)
    pairs = _unit_outputs(model, built, trial, layers)
    if hasattr(model, 'extract_feat'):
        pairs += zip(features(model, scope), features(built, scope), strict=True)
    if not all(bool(expected.isfinite().all()) for expected, _ in pairs):
        raise UsageError(
            'nothing was written, since the sparse model gives values that are not finite on a '
            'random image: its weights or running statistics are damaged.'
        )
    difference = _largest_difference(pairs)
    if not difference <= TOLERANCE:
        raise UsageError(
            f'nothing was written, since the exported model differs by {difference:.1e} of the '
            'largest value: something in the model depends on its norms or convolutions in a way '
            'that is not known here. Use the sparse checkpoint without --export.'
        )
    return Export(layers, text, state, difference)


def write_export(
    exported: Export, checkpoint: Mapping[str, Any], source: str, out: str | os.PathLike
) -> None:
    """Write the builder, the checkpoint and the config of an export, each whole or not at all.

    Of the checkpoint that it was made of, the names of the classes are kept.

    Raises:
        UsageError: a file cannot be written.
    """
    out = Path(out)
    meta = checkpoint.get('meta')
    kept = {'dataset_meta'} & set(meta if isinstance(meta, dict) else ())
    note = dict(source=os.path.basename(source), tool=f'sn_openmmlab {__version__}')
    written = {'meta': {**{key: meta[key] for key in kept}, 'export': note}}
    write_file(module_text().encode(), out.with_name(f'{MODULE}.py'))
    write_checkpoint({**written, 'state_dict': exported.state}, out)
    write_file(exported.config.encode(), out.with_suffix('.py'))


def build_exported(text: str, state: Mapping[str, Tensor], scope: str) -> nn.Module:
    """Return an exported model, built as its user will build it, in evaluation mode.

    Args:
        text: of the config.
        state: the weights.
        scope: the toolbox.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / 'config.py'
        file.write_text(text)
        (Path(folder) / f'{MODULE}.py').write_text(module_text())
        model = Config.fromfile(file).model
    with DefaultScope.overwrite_default_scope(scope):
        built = MODELS.build(model)
    built.load_state_dict(state)
    return built.eval()


def _state(model: nn.Module, layers: Sequence[ExportedLayer]) -> dict[str, Tensor]:
    """Return the weights of the exported model."""
    starts = tuple(f'{layer.name}.' for layer in layers)
    state = {k: v for k, v in model.state_dict().items() if not k.startswith(starts)}
    for layer in layers:
        state |= layer.weights
    # Without the class of mmengine's or torch's dict, and each with its own memory.
    return {name: weight.detach().clone() for name, weight in state.items()}


def _unit_outputs(
    model: nn.Module, built: nn.Module, trial: Trial, layers: Sequence[ExportedLayer]
) -> list[tuple[Tensor, Tensor]]:
    """Return what each SN layer gave and what takes its place gives for the same input."""
    generator = torch.Generator().manual_seed(0)
    pairs = []
    for layer in layers:
        if layer.norm['type'] == 'Folded':
            conv = built.get_submodule(layer.norm['conv'])
            pairs.append((trial.outputs[layer.name], conv(trial.conv_inputs[layer.norm['conv']])))
            continue
        old, new = (net.get_submodule(layer.name) for net in (model, built))
        x = trial.inputs.get(layer.name)
        if x is None:
            x = torch.randn(2, int(old.num_features), 8, 8, generator=generator)
        pairs.append((old(x), new(x)))
    return pairs


def _largest_difference(pairs: Sequence[tuple[Tensor, Tensor]]) -> float:
    """Return the largest difference of two tensors, as a share of the largest value in them."""
    shares = [
        (found - expected).abs().max() / expected.abs().max().clamp(min=1e-12)
        for expected, found in pairs
        if expected.numel()
    ]
    # Unlike Python's max, this does not lose NaN.
    return torch.stack(shares).max().item() if shares else 0.0
