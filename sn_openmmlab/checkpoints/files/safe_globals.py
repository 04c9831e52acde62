"""The globals that MMEngine writes into checkpoints besides tensors."""

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
    """Replace `getattr`, by which a checkpoint could reach any attribute of anything."""
    for known, names in _METHODS.items():
        if owner is known and name in names:
            return getattr(owner, name)
    raise UnpicklingError(f'GLOBAL getattr is allowed for few methods, not {name!r} of {owner!r}')


def _full_name(item: type) -> str:
    return f'{item.__module__}.{item.__qualname__}'


# With their names: OneDL's MMEngine forgets bare globals after each file that it loads.
SAFE_GLOBALS = [
    (_known_method, 'builtins.getattr'),
    *((item, _full_name(item)) for item in (*_METHODS, np.ndarray, np.dtype)),
    # The types of numbers from metrics, as in best_score.
    *((kind, _full_name(kind)) for kind in {type(np.dtype(code)) for code in '?bhilqBHILQefd'}),
    # NumPy 2 renamed the module; a checkpoint holds the name in the NumPy that wrote it.
    (multiarray._reconstruct, 'numpy.core.multiarray._reconstruct'),
    (multiarray._reconstruct, 'numpy._core.multiarray._reconstruct'),
    (multiarray.scalar, 'numpy.core.multiarray.scalar'),
    (multiarray.scalar, 'numpy._core.multiarray.scalar'),
]


def allow_mmengine_checkpoints() -> None:
    """Let `torch.load(weights_only=True)` read the checkpoints that MMEngine writes.

    Since torch 2.6 this is the default, with which MMEngine 0.10.7 cannot read its own files. In
    earlier versions of torch it is neither possible nor needed.
    """
    if torch.__version__ >= torch.torch_version.TorchVersion('2.6'):
        torch.serialization.add_safe_globals(SAFE_GLOBALS)
