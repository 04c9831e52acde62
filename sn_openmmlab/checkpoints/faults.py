"""Why a checkpoint does not fill the SN layers of a model."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from sn_openmmlab.checkpoints.fit import Fit
from sn_openmmlab.checkpoints.names import few, shown
from sn_openmmlab.checkpoints.norm_names import as_sn, batch_norm_of, batch_norms
from sn_openmmlab.checkpoints.trial_loading import LoadedLayer
from sn_openmmlab.layers.switch_norm import SwitchNorm

_OTHER_NORMS = 'bn|gn|in|ln'
Cause = Literal['authors', 'batch norm', 'prefix', 'part', 'other', 'other norm']


@dataclass(frozen=True)
class Fault:
    """Why weights must not be loaded.

    Attributes:
        cause: The kind of fault:

            - `'authors'`: the weights have the authors' layout;
            - `'batch norm'`: the file has BatchNorm where the model has SN;
            - `'prefix'`: the weights would fit without the prefix `place`;
            - `'part'`: the file holds only the part `place` of the model;
            - `'other'`: the weights are those of another network, whose part `place` fits;
            - `'other norm'`: the file has SN where the model has another norm.
        reason: A clause about the file, which it calls "it".
        place: A prefix or a part, or `''`.
    """

    cause: Cause
    reason: str
    place: str = ''


def find_fault(fit: Fit, needed: Collection[str] | None = None) -> Fault | None:
    """Return why weights must not be loaded, or None if they may be.

    Args:
        fit: What they fill.
        needed: The names of the SN layers that have to be filled; all if None.
    """
    names = [name for name in fit.unfilled if needed is None or name in needed]
    if not names:
        return _other_norm(fit)
    unfilled = {name: fit.switch_norms[name] for name in names}
    held = _Held.of(fit.state)
    # In this order, since each fault causes those after it.
    for find in (_authors, _batch_norm, _prefix, _part):
        if fault := find(fit, unfilled, held):
            return fault
    return _other(fit, names)


@dataclass(frozen=True)
class _Held:
    """The names of the norm layers that a file holds."""

    switch_norms: frozenset[str]
    batch_norms: frozenset[str]

    @classmethod
    def of(cls, state: Iterable[str]) -> '_Held':
        names, end = list(state), '.mean_weight'
        controls = (name.removesuffix(end) for name in names if name.endswith(end))
        return cls(frozenset(controls), frozenset(batch_norms(names)))

    def has(self, layers: Mapping[str, SwitchNorm]) -> bool:
        """Return whether all of these layers are there, as SN or as BatchNorm."""
        return all(
            name in self.switch_norms or batch_norm_of(name, layer, self.batch_norms) is not None
            for name, layer in layers.items()
        )

    def under(self, prefix: str) -> '_Held':
        """Return what lies under a prefix, by the names without it."""
        return _Held(
            frozenset(_stripped(prefix, self.switch_norms)),
            frozenset(_stripped(prefix, self.batch_norms)),
        )


def _authors(fit: Fit, unfilled: Mapping[str, LoadedLayer], held: _Held) -> Fault | None:
    shapes = [found for layer in unfilled.values() for found, _ in layer.misfits.values()]
    if any(len(shape) > 1 for shape in shapes):
        return Fault('authors', 'it has the layout of the authors')
    return None


def _batch_norm(fit: Fit, unfilled: Mapping[str, LoadedLayer], held: _Held) -> Fault | None:
    found = {
        name: norm
        for name, layer in unfilled.items()
        if (norm := batch_norm_of(name, layer.module, held.batch_norms))
    }
    if not found:
        return None
    name, norm = next(iter(found.items()))
    layers = f'{len(found)} of {len(fit.switch_norms)} layers, such as {shown(norm)} for {name}'
    reason = f'it holds BatchNorm where the model has SN ({layers})'
    rest = [layer for layer in unfilled if layer not in found]
    if not rest:
        return Fault('batch norm', reason)
    reason = f'{reason}, and nothing for {len(rest)} others, such as {rest[0]}'
    return Fault('other', reason, _startable(fit, held))


def _prefix(fit: Fit, unfilled: Mapping[str, LoadedLayer], held: _Held) -> Fault | None:
    layers = {name: layer.module for name, layer in unfilled.items()}
    names = held.switch_norms | held.batch_norms
    prefixes = {name[: dot.end()] for name in names for dot in re.finditer(r'\.', name)}
    for prefix in sorted(prefixes, key=len):
        if held.under(prefix).has(layers):
            return Fault('prefix', f'its weights lie under {shown(prefix)!r}', prefix)
    return None


def _part(fit: Fit, unfilled: Mapping[str, LoadedLayer], held: _Held) -> Fault | None:
    layers = {name: layer.module for name, layer in fit.switch_norms.items()}
    # The outermost part first.
    for part, _ in fit.module.named_modules():
        inner = _under(f'{part}.', layers) if part else {}
        if inner and held.has(inner):
            return Fault('part', f'it holds only {part}', part)
    return None


def _other(fit: Fit, unfilled: list[str]) -> Fault:
    lacking = f'it lacks {len(unfilled)} of the {len(fit.switch_norms)} SN layers'
    nothing = 'it holds none of the weights of this model'
    reason = f'{nothing if fit.fills_nothing else lacking}, such as {few(unfilled)}'
    return Fault('other', reason, _startable(fit, _Held.of(fit.state)))


def _other_norm(fit: Fit) -> Fault | None:
    controls = _Held.of(fit.state).switch_norms
    theirs = {
        name: found
        for name in fit.other_norms
        if (found := next((n for n in (name, as_sn(name, _OTHER_NORMS)) if n in controls), None))
    }
    if not theirs:
        return None
    name, found = next(iter(theirs.items()))
    kind = type(fit.other_norms[name].module).__name__
    layers = f'{len(theirs)} layers, such as {shown(found)} for {name}'
    return Fault('other norm', f'it holds SN where the model has {kind} ({layers})')


def _startable(fit: Fit, held: _Held) -> str:
    """Return the first child of the module for which the file has all SN layers, or `''`."""
    layers = {name: layer.module for name, layer in fit.switch_norms.items()}
    children = dict.fromkeys(name.split('.')[0] for name in layers)
    whole = (
        child for child in children if held.under(f'{child}.').has(_under(f'{child}.', layers))
    )
    return next(whole, '')


def _under(prefix: str, layers: Mapping[str, SwitchNorm]) -> dict[str, SwitchNorm]:
    return {name: layers[f'{prefix}{name}'] for name in _stripped(prefix, layers)}


def _stripped(prefix: str, names: Iterable[str]) -> list[str]:
    return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
