"""What to write in a config instead of weights that do not fit."""

import re
from shlex import quote

from sn_openmmlab.checkpoints.faults import Fault
from sn_openmmlab.runs.weights.sources import WeightSource


def advise(source: WeightSource, fault: Fault) -> str:
    """Return a clause that says what to do about a fault of a source of weights."""
    whole = source.place == 'load_from'
    if fault.cause == 'other norm':
        return "set norm_cfg=dict(type='SN') there, or name a file with the norms of the model"
    if fault.cause == 'other':
        other = 'name a file of this network'
        if not (whole and fault.place):
            return other
        start = _init_cfg(source, fault.place, fault.place + '.')
        return f'start the parts that it fits one by one, for example by {start}, or {other}'
    by_mmengine = source.loader == 'mmengine'
    if not by_mmengine and fault.cause not in ('batch norm', 'authors'):
        return 'name a file of this network'
    if not by_mmengine or (whole and fault.cause == 'authors'):
        return f'{_conversion(source.file)}, and name OUT instead'
    if fault.cause == 'part':
        return f'write {_init_cfg(source, fault.place)}'
    if fault.cause == 'prefix':
        return f'write {_init_cfg(source, prefix=fault.place)}'
    return f'write {_init_cfg(source, prefix=(source.cfg or {}).get("prefix"))}, which converts it'


def advise_test(source: str, fault: Fault) -> str:
    """Return a clause that says what to do about a checkpoint that cannot be evaluated."""
    if fault.cause == 'authors':
        return _conversion(source)
    return 'give the config that it was trained with'


def _conversion(file: object) -> str:
    return f'convert it first, by python tools/convert_checkpoint.py {quote(str(file))} OUT'


def _init_cfg(source: WeightSource, part: str = '', prefix: str | None = None) -> str:
    """Return the init_cfg to write for the module of a source, or for a part of it."""
    whole = source.place == 'load_from'
    place = '.'.join(filter(None, ['model' if whole else source.place, part]))
    # MMDetection's semi-supervised models build both from this.
    place = re.sub(r'^model\.(student|teacher)\b', 'model.detector', place)
    more = f', prefix={prefix!r}' if prefix else ''
    init = f"{place}.init_cfg=dict(type='SNPretrained', checkpoint={str(source.file)!r}{more})"
    return f'{init} in place of load_from' if whole else init
