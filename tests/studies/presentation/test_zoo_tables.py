"""The tables of the zoos count what the records say."""

import pytest

from studies.presentation.zoo_tables import is_all_sn, outcome, zoo_tables
from studies.zoos.records import Record, Run

SURVEY = [
    {'config': 'a.py', 'norms': {'BN': 53, 'GN': 8}, 'sn': 61, 'cpu_seconds': 90},
    {'config': 'b.py', 'norms': {'BN': 4}, 'sn': 3, 'left': {'BN: why': 1}, 'cpu_seconds': 0},
    {'config': 'c.py', 'norms': {'BN': 4}, 'sn_fails': 'ValueError: odd', 'cpu_seconds': 0},
    {'config': 'd.py', 'norms': {}, 'cpu_seconds': 30},
    {'config': 'e.py', 'fails': 'ImportError: no timm', 'cpu_seconds': 0},
    {'config': 'f.py', 'fails': 'ImportError: no timm', 'cpu_seconds': 0},
    {'config': 'g.py', 'no_model': 'has no model', 'cpu_seconds': 0},
]
STEP = {'loss': 1.5, 'finite': True, 'norms': 9}
OWN = {'unreached': ['x'], **STEP}
STEPS = [
    {'toolbox': 'mmdet', 'config': 'a.py', 'size': 64, '2': STEP, '1': STEP, 'cpu_seconds': 2},
]


def test_all_tables() -> None:
    page = zoo_tables([Run('onedl', 'mmdet', SURVEY), Run('onedl', 'steps', STEPS)])
    assert '| mmdet | onedl | 6 | 4 | 3 | 2 | 1 | 64 | 2.0 |' in page
    assert '| mmdet | onedl | ImportError: no timm | 2 | `e.py` |' in page
    assert '| mmdet | onedl | has no model | 1 | `g.py` |' in page
    assert '- mmdet onedl: 1 configs, such as `b.py`: 1 BN: why' in page
    assert '- mmdet onedl: 1 configs, such as `c.py`: ValueError: odd' in page
    assert '| `mmdet::a.py` | 64 | 9 | trains | trains |' in page


def test_a_lost_layer_is_noticed() -> None:
    assert is_all_sn({'norms': {'BN': 2, 'SyncBN': 1}, 'sn': 3})
    assert not is_all_sn({'norms': {'BN': 2}, 'sn': 1})
    assert not is_all_sn({'norms': {'BN': 2}, 'sn': 2, 'left': {'GN: why': 1}})


@pytest.mark.parametrize(
    ('result', 'words'),
    [
        (STEP, 'trains'),
        ({**STEP, 'finite': False}, 'not finite'),
        ({**OWN, 'own': OWN}, 'trains; 1 layer without a gradient, as with its own norms'),
        ({**OWN, 'own': STEP}, 'trains; 1 layer without a gradient, unlike with its own norms'),
        (
            {**OWN, 'own': {'fails': 'E: x'}},
            'trains, its own norms fail; 1 layer without a gradient',
        ),
        ({**STEP, 'fixed': ['x', 'y'], 'own': STEP}, 'trains; 2 layers whose ratios have none'),
        ({'fails': 'E: x', 'own': {'fails': 'E: x'}}, 'fails (E: x), and so do its own norms'),
        ({'fails': 'E: x', 'own': STEP}, 'fails (E: x), its own norms train'),
    ],
)
def test_outcome_of_a_step(result: Record, words: str) -> None:
    assert outcome(result) == words
