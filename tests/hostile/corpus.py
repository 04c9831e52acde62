"""All hostile checkpoints, by family."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from mmengine.logging import HistoryBuffer

from sn_openmmlab import SwitchNorm
from tests.hostile.archives import archives
from tests.hostile.bombs import bombs
from tests.hostile.calls import calls
from tests.hostile.mutations import changed, damaged, damaged_pickles, saved
from tests.hostile.others import others


def training() -> dict[str, Any]:
    """Return a checkpoint with all that MMEngine saves for a training."""
    network = torch.nn.Sequential(torch.nn.Linear(2, 2), SwitchNorm(2, scopes=('in', 'ln')))
    optimizer = torch.optim.AdamW(network.parameters(), 0.01)
    network(torch.ones(3, 2)).sum().backward()
    optimizer.step()
    return {
        'meta': {
            'epoch': 2, 'iter': 8, 'seed': 0, 'time': '20250101', 'experiment_name': 'line',
            'cfg': "model = dict(norm_cfg=dict(type='SN', scopes=('in', 'ln')))",
            'dataset_meta': {'classes': ('a', 'b'), 'palette': [(1, 2, 3)]},
        },
        'state_dict': network.state_dict(prefix='layer.'),
        'ema_state_dict': {'module.layer.weight': torch.ones(1, 2), 'steps': torch.tensor(8)},
        'message_hub': {
            'log_scalars': {'train/loss': HistoryBuffer(np.ones(8), np.ones(8))},
            'runtime_info': {'best_score': np.float32(0.5), 'best_ckpt': 'work/best_epoch_2.pth',
                             'last_ckpt': 'work/epoch_2.pth', 'keep_ckpt_ids': [1, 2], 'epoch': 1},
            'resumed_keys': {'train/loss': True, 'best_score': True, 'best_ckpt': True},
        },
        'optimizer': optimizer.state_dict(),
        'param_schedulers': [{'milestones': {8: 1}, 'gamma': 0.1, 'last_step': 2}],
    }  # fmt: skip


def families(canary: str) -> dict[str, Iterator[tuple[str, bytes]]]:
    """Return the files of each family by name.

    Args:
        canary: the path of a file that they would make if they ran code.
    """
    torch.manual_seed(0)
    content = training()
    whole = {
        'weights': saved(content['state_dict']),
        'legacy weights': saved(content['state_dict'], False),
        'training': saved(content),
        'legacy training': saved(content, False),
    }
    pickled = {name: whole[name] for name in ('weights', 'training')}
    return {
        'calls of functions, by every opcode': calls(canary),
        'memory and time': bombs(),
        'archives': archives(),
        'other formats and contents': others(),
        'damaged files': damaged(whole, 150),
        'damaged pickles in whole files': damaged_pickles(pickled, 150),
        'changed checkpoints of a training': changed(content, 300),
    }


def corpus(canary: str) -> Iterator[tuple[str, bytes]]:
    """Yield all files; their names begin with their family's."""
    for family, files in families(canary).items():
        for name, content in files:
            yield f'{family}: {name}', content
