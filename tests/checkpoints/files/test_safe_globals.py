"""Globals that checkpoints of MMEngine hold are allowed, and no others."""

import pickle
import pickletools
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from mmengine.logging import HistoryBuffer
from mmengine.optim import OneCycleParamScheduler
from mmengine.runner import CheckpointLoader

from sn_openmmlab.checkpoints.files.safe_globals import SAFE_GLOBALS

DTYPES = '?bhilqBHILQefd'


class CallOnLoad:
    """Pickles as the call of a function."""

    def __init__(self, function: Callable, *args: Any) -> None:
        self.call = (function, args)

    def __reduce__(self) -> tuple:
        return self.call


def globals_of(checkpoint: Path) -> set[str]:
    """Return the globals that a checkpoint names, as read by Python's pickletools."""
    with zipfile.ZipFile(checkpoint) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith('/data.pkl')]
        pickled = archive.read(name)
    return {
        # Protocol 2 writes Python 2's name of the module.
        arg.replace(' ', '.').replace('__builtin__', 'builtins')
        for opcode, arg, _ in pickletools.genops(pickled)
        if opcode.name == 'GLOBAL'
    }


def saved(value: Any, folder: Path) -> Path:
    file = folder / 'saved.pth'
    torch.save({'value': value}, file)
    return file


def test_real_checkpoint_is_read_as_without_the_guard(real_checkpoint: Path) -> None:
    safe = torch.load(real_checkpoint, weights_only=True)
    trusted = torch.load(real_checkpoint, weights_only=False)
    assert safe['meta']['epoch'] == 2
    assert safe['meta']['iter'] == 8
    assert set(safe) == set(trusted)
    assert {'optimizer', 'param_schedulers', 'ema_state_dict', 'message_hub'} < set(safe)
    assert safe['message_hub']['runtime_info'] == trusted['message_hub']['runtime_info']
    assert safe['param_schedulers'] == trusted['param_schedulers']
    losses = safe['message_hub']['log_scalars']['train/loss']
    assert isinstance(losses, HistoryBuffer)
    expected = trusted['message_hub']['log_scalars']['train/loss'].data
    np.testing.assert_array_equal(losses.data, expected)
    assert len(losses.data[0]) == 8
    assert losses.mean(2) == pytest.approx(expected[0][-2:].mean())
    for part in ('state_dict', 'ema_state_dict'):
        for name, tensor in trusted[part].items():
            assert torch.equal(safe[part][name], tensor)
    moments = trusted['optimizer']['state'][0]
    assert torch.equal(safe['optimizer']['state'][0]['exp_avg'], moments['exp_avg'])


def test_allowed_names_are_those_of_real_checkpoints(real_checkpoint: Path) -> None:
    default = torch._weights_only_unpickler._get_allowed_globals()
    held = globals_of(real_checkpoint) - set(default)
    numpy_module = np.dtype(float).type(0).__reduce__()[0].__module__
    assert held == {
        'builtins.getattr',
        'mmengine.logging.history_buffer.HistoryBuffer',
        'mmengine.optim.scheduler.param_scheduler.OneCycleParamScheduler',
        'numpy.dtype',
        'numpy.ndarray',
        f'{numpy_module}._reconstruct',
        f'{numpy_module}.scalar',
    }
    allowed = {name for _, name in SAFE_GLOBALS}
    other_numpy = {
        f'numpy.{core}.multiarray.{name}'
        for core in ('core', '_core')
        for name in ('_reconstruct', 'scalar')
    }
    # A number's type is never named, but is asked for where its state is set.
    dtypes = {
        f'{type(np.dtype(code)).__module__}.{type(np.dtype(code)).__qualname__}' for code in DTYPES
    }
    assert allowed == held | other_numpy | dtypes


def test_nothing_in_a_real_checkpoint_is_unsafe_for_torch(real_checkpoint: Path) -> None:
    assert torch.serialization.get_unsafe_globals_in_checkpoint(real_checkpoint) == []


@pytest.mark.parametrize('module', ['numpy.core.multiarray', 'numpy._core.multiarray'])
def test_checkpoints_of_both_numpys_are_read(
    real_checkpoint: Path, tmp_path: Path, module: str
) -> None:
    renamed = tmp_path / 'renamed.pth'
    with zipfile.ZipFile(real_checkpoint) as old, zipfile.ZipFile(renamed, 'w') as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith('/data.pkl'):
                for core in (b'_core', b'core'):
                    content = content.replace(
                        b'cnumpy.' + core + b'.multiarray\n', b'c' + module.encode() + b'\n'
                    )
            new.writestr(name, content)
    assert {f'{module}.scalar', f'{module}._reconstruct'} < globals_of(renamed)
    read = torch.load(renamed, weights_only=True)
    losses = read['message_hub']['log_scalars']['train/loss'].data[0]
    trusted = torch.load(real_checkpoint, weights_only=False)
    np.testing.assert_array_equal(
        losses, trusted['message_hub']['log_scalars']['train/loss'].data[0]
    )
    assert read['message_hub']['runtime_info']['best_score'] == np.float32(0.5)


@pytest.mark.parametrize('code', DTYPES)
def test_numbers_of_every_type_are_read(code: str, tmp_path: Path) -> None:
    number, array = np.dtype(code).type(1), np.array([0, 1], code)
    read = torch.load(saved([number, array], tmp_path), weights_only=True)['value']
    assert read[0] == 1
    assert read[0].dtype == np.dtype(code)
    np.testing.assert_array_equal(read[1], [0, 1])
    assert read[1].dtype == np.dtype(code)


@pytest.mark.parametrize(
    'array',
    [np.zeros(2, [('a', 'f8'), ('b', 'O')]), np.zeros(2, 'M8[s]'), np.array([{}], object)],
    ids=['structured', 'times', 'objects'],
)
def test_other_arrays_are_refused(array: np.ndarray, tmp_path: Path) -> None:
    with pytest.raises(pickle.UnpicklingError):
        torch.load(saved(array, tmp_path), weights_only=True)


@pytest.mark.parametrize(
    ('owner', 'name', 'expected'),
    [
        *((HistoryBuffer, name, getattr(HistoryBuffer, name)) for name in ('min', 'max', 'mean')),
        (HistoryBuffer, 'current', HistoryBuffer.current),
        (OneCycleParamScheduler, '_annealing_cos', OneCycleParamScheduler._annealing_cos),
        (OneCycleParamScheduler, '_annealing_linear', OneCycleParamScheduler._annealing_linear),
    ],
)
def test_methods_that_checkpoints_name_are_found(
    owner: type, name: str, expected: Callable, tmp_path: Path
) -> None:
    read = torch.load(saved(CallOnLoad(getattr, owner, name), tmp_path), weights_only=True)
    assert read['value'] is expected


@pytest.mark.parametrize(
    ('owner', 'name'),
    [
        (HistoryBuffer, 'update'),
        (HistoryBuffer, '__init__'),
        (HistoryBuffer, '__subclasses__'),
        (HistoryBuffer, 'register_statistics'),
        (HistoryBuffer, '_annealing_cos'),
        (OneCycleParamScheduler, '__class__'),
        (np.ndarray, 'max'),
        (torch.Tensor, 'mean'),
        ([1], 'append'),
    ],
)
def test_any_other_attribute_is_refused(owner: Any, name: str, tmp_path: Path) -> None:
    with pytest.raises(pickle.UnpicklingError):
        torch.load(saved(CallOnLoad(getattr, owner, name), tmp_path), weights_only=True)


def test_names_stay_allowed_after_another_loader_forgets_its_own(real_checkpoint: Path) -> None:
    bare = [getattr, HistoryBuffer, np.ndarray, np.dtype, type(np.dtype(np.float64))]
    with torch.serialization.safe_globals(bare):
        pass
    assert torch.load(real_checkpoint, weights_only=True)['meta']['epoch'] == 2


def test_mmengine_reads_its_own_checkpoint(real_checkpoint: Path) -> None:
    for _ in range(2):
        assert CheckpointLoader.load_checkpoint(str(real_checkpoint))['meta']['epoch'] == 2
    assert torch.load(real_checkpoint, weights_only=True)['meta']['epoch'] == 2
