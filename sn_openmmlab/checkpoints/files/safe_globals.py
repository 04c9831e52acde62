"""The globals that checkpoints of mmengine hold besides tensors."""

from collections.abc import Callable
from pickle import UnpicklingError

import numpy as np
import torch
from mmengine.logging import HistoryBuffer
from mmengine.optim import OneCycleParamScheduler

try:
    from numpy._core import multiarray
except ImportError:
    from numpy.core import multiarray

# pickle names the methods of a class as getattr(class, name).
_METHODS = {
    HistoryBuffer: ('min', 'max', 'mean', 'current'),
    OneCycleParamScheduler: ('_annealing_cos', '_annealing_linear'),
}


def _known_method(owner: type, name: str) -> Callable:
    """Take the place of ``getattr``, which would give a checkpoint any attribute of anything."""
    for known, names in _METHODS.items():
        if owner is known and name in names:
            return getattr(owner, name)
    raise UnpicklingError(f'GLOBAL getattr is allowed for few methods, not {name!r} of {owner!r}')


def _full_name(item: type) -> str:
    return f'{item.__module__}.{item.__qualname__}'


# With their names, for OneDL's mmengine forgets bare ones after each file it loads.
SAFE_GLOBALS = [
    (_known_method, 'builtins.getattr'),
    *((item, _full_name(item)) for item in (*_METHODS, np.ndarray, np.dtype)),
    # The types of a number that a metric gave, as in best_score.
    *((kind, _full_name(kind)) for kind in {type(np.dtype(code)) for code in '?bhilqBHILQefd'}),
    # numpy 2 renamed the module; a checkpoint holds the name of the numpy that wrote it.
    (multiarray._reconstruct, 'numpy.core.multiarray._reconstruct'),
    (multiarray._reconstruct, 'numpy._core.multiarray._reconstruct'),
    (multiarray.scalar, 'numpy.core.multiarray.scalar'),
    (multiarray.scalar, 'numpy._core.multiarray.scalar'),
]


def allow_mmengine_checkpoints() -> None:
    """Let ``torch.load(weights_only=True)`` read the checkpoints that mmengine writes.

    Since torch 2.6 that is the default, and mmengine 0.10.7 could not read its own files. Before
    torch 2.6 such names cannot be allowed, and mmengine does not need it.
    """
    if torch.__version__ >= torch.torch_version.TorchVersion('2.6'):
        torch.serialization.add_safe_globals(SAFE_GLOBALS)
