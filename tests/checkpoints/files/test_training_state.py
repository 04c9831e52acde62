"""The state of a training is told from damaged ones before it is resumed."""

import copy
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from mmengine.logging import HistoryBuffer

from sn_openmmlab.checkpoints.files.training_state import check_state
from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.command_line import run_parser


@pytest.fixture
def checkpoint(real_checkpoint: Path) -> dict[str, Any]:
    return torch.load(real_checkpoint, weights_only=False)


def test_mmengines_own_passes(checkpoint: dict[str, Any]) -> None:
    check_state(checkpoint, 'NAME')


def test_a_training_without_a_seed_or_an_optimizer_passes(checkpoint: dict[str, Any]) -> None:
    del checkpoint['optimizer']
    checkpoint['meta'].pop('seed', None)
    check_state(checkpoint, 'NAME')
    checkpoint['optimizer'] = {'generator': {'state': {}, 'param_groups': []}}
    check_state(checkpoint, 'NAME')


def test_states_that_differ_by_shape_pass(checkpoint: dict[str, Any]) -> None:
    matrix, vector = dict(step=1, row=torch.ones(2), col=torch.ones(3)), dict(step=1, all=None)
    checkpoint['optimizer']['state'] = {0: matrix, 1: vector, 2: dict(step=1, all=torch.ones(2))}
    checkpoint['message_hub']['runtime_info']['best_score'] = torch.tensor(0.5)
    check_state(checkpoint, 'NAME')


def _buffer(**attributes: Any) -> HistoryBuffer:
    buffer = HistoryBuffer([1.0], [1])
    vars(buffer).update(attributes)
    return buffer


@pytest.mark.parametrize(
    ('change', 'part'),
    [
        (lambda c: c['meta'].update(epoch='1'), r"meta\['epoch'\]"),
        (lambda c: c['meta'].update(iter=-1), r"meta\['iter'\]"),
        (lambda c: c['meta'].update(iter=True), r"meta\['iter'\]"),
        (lambda c: c['meta'].update(seed='x'), r"meta\['seed'\]"),
        (lambda c: c['message_hub'].pop('runtime_info'), r"message_hub\['runtime_info'\]"),
        (lambda c: c['message_hub'].update(log_scalars=[]), r"message_hub\['log_scalars'\]"),
        (lambda c: c['message_hub']['log_scalars'].update({1: 2}), r"message_hub\['log_scalars'\]"),
        (
            lambda c: c['message_hub']['resumed_keys'].update(a=None),
            r"message_hub\['resumed_keys'\]",
        ),
        *(
            (
                lambda c, a=attributes: c['message_hub']['log_scalars'].update(x=_buffer(**a)),
                r"message_hub\['log_scalars'\]",
            )
            for attributes in (
                {'max_length': 'x'},
                {'mean': max},
                {'_log_history': [1.0]},
                {'_log_history': np.ones((2, 2))},
                {'_log_history': np.ones(2)},
                {'_log_history': np.array(['a'])},
            )
        ),
        (lambda c: c['message_hub']['runtime_info'].update(best_score='x'), 'best_score'),
        (lambda c: c.update(optimizer=[]), 'optimizer'),
        (lambda c: c['optimizer'].pop('state'), 'optimizer'),
        (lambda c: c['optimizer']['state'].update({0: 1}), 'optimizer'),
        (lambda c: c['optimizer']['state'][0].pop('exp_avg'), 'optimizer'),
        (lambda c: c['optimizer']['state'][0].update(exp_avg=1), 'optimizer'),
    ],
)
def test_damage_is_named(change: Callable, part: str, checkpoint: dict[str, Any]) -> None:
    damaged = copy.deepcopy(checkpoint)
    change(damaged)
    with pytest.raises(UsageError, match=f'NAME holds no training .* since its .*{part}.* is dam'):
        check_state(damaged, 'NAME')


def test_weights_alone_are_no_training() -> None:
    with pytest.raises(UsageError, match=r'but no training to resume.* load_from=NAME'):
        check_state({'state_dict': {}}, 'NAME')


@pytest.mark.parametrize(
    'name', ['run/1.pth', 'a run/1.pth', "it's run (2)/1 $HOME.pth", 'ü/1&.pth']
)
def test_options_of_the_weights_can_be_pasted_into_a_shell(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_state({'state_dict': {}}, name)
    _, _, pasted = str(caught.value).partition(', give ')
    options = shlex.split(pasted.removesuffix(' in place of --resume.'))
    args = run_parser('Test.').parse_args(['config.py', *options])
    assert args.cfg_options == {'load_from': name}
