"""Tell the operation counters of mmengine and fvcore what the layer costs."""

from importlib import import_module
from importlib.util import find_spec

from sn_openmmlab.ops.counted import KIND

# Both have such a table, and a rule for norm layers: 5 operations per element, 4 without γ and β.
_TABLES = {
    'mmengine.analysis.complexity_analysis': '_DEFAULT_SUPPORTED_FLOP_OPS',
    'fvcore.nn.flop_count': '_DEFAULT_SUPPORTED_OPS',
}


def register_flop_counts() -> None:
    """Make the installed counters count the layer as they count InstanceNorm."""
    for name, table in _TABLES.items():
        if find_spec(name.partition('.')[0]) is None:
            continue
        try:
            counter = import_module(name)
            getattr(counter, table)[KIND] = counter.norm_flop_counter(1)
        except (ImportError, AttributeError):
            continue  # a version with other tables
