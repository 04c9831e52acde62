"""What to write in a config in place of a start from weights that do not fit."""

import re

from sn_openmmlab.checkpoints.faults import Fault
from sn_openmmlab.runs.weights.sources import Way


def advise(way: Way, fault: Fault) -> str:
    """Return a clause that says what to do about a fault of a way of start."""
    whole = way.place == 'load_from'
    if fault.cause == 'other norm':
        return "set norm_cfg=dict(type='SN') there, or name a file with the norms of the model"
    if fault.cause == 'other':
        other = 'name a file of this network'
        if not (whole and fault.place):
            return other
        start = _start(way, fault.place, fault.place + '.')
        return f'start the parts that it fits one by one, as by {start}, or {other}'
    by_mmengine = way.loader == 'mmengine'
    if not by_mmengine and fault.cause not in ('batch norm', 'authors'):
        return 'name a file of this network'
    if not by_mmengine or (whole and fault.cause == 'authors'):
        return (
            f'convert it first, by python tools/convert_checkpoint.py {way.source} OUT, and name '
            'OUT in its place'
        )
    if fault.cause == 'part':
        return f'write {_start(way, fault.place)}'
    if fault.cause == 'prefix':
        return f'write {_start(way, prefix=fault.place)}'
    return f'write {_start(way, prefix=(way.cfg or {}).get("prefix"))}, which converts it'


def advise_test(source: str, fault: Fault) -> str:
    """Return a clause that says what to do about a checkpoint that cannot be evaluated."""
    if fault.cause == 'authors':
        return f'convert it first, by python tools/convert_checkpoint.py {source} OUT'
    return 'give the config that it was trained by'


def _start(way: Way, part: str = '', prefix: str | None = None) -> str:
    """The init_cfg to write, of the module of a way or of a part of it."""
    whole = way.place == 'load_from'
    place = '.'.join(filter(None, ['model' if whole else way.place, part]))
    # MMDetection's semi-supervised models build both of this.
    place = re.sub(r'^model\.(student|teacher)\b', 'model.detector', place)
    more = f', prefix={prefix!r}' if prefix else ''
    init = f"{place}.init_cfg=dict(type='SNPretrained', checkpoint={str(way.source)!r}{more})"
    return f'{init} in place of load_from' if whole else init
