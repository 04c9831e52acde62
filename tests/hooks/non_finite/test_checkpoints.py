"""The newest checkpoint whose weights are finite."""

import math
import os
from pathlib import Path

import torch

from sn_openmmlab.hooks.non_finite.checkpoints import last_good_checkpoint


def _save(file: Path, time: int, weight: float = 1.0, **parts: object) -> Path:
    state = dict(conv=torch.tensor([1.0, weight]), count=torch.tensor(3))
    torch.save(dict(state_dict=state, **parts), file)
    os.utime(file, (time, time))
    return file


def test_damaged_foreign_and_spoiled_files_are_passed_over(tmp_path: Path) -> None:
    assert last_good_checkpoint(tmp_path) is None
    _save(tmp_path / 'iter_1.pth', 1)
    # By time: 9 is a smaller name than 10.
    good = _save(tmp_path / 'iter_10.pth', 3)
    _save(tmp_path / 'iter_9.pth', 2)
    assert last_good_checkpoint(tmp_path) == good
    _save(tmp_path / 'nan.pth', 4, math.nan)
    _save(tmp_path / 'average.pth', 5, ema_state_dict=dict(conv=torch.tensor(math.inf)))
    torn = tmp_path / 'torn.pth'
    torn.write_bytes(good.read_bytes()[:200])
    os.utime(torn, (6, 6))
    foreign = tmp_path / 'foreign.pth'
    torch.save(dict(weights=torch.ones(2)), foreign)
    os.utime(foreign, (7, 7))
    assert last_good_checkpoint(tmp_path) == good
