"""Mistakes that are drawn: a place of a good config, and what is wrong there."""

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

from studies.mistakes.case import Case, Scene
from studies.mistakes.configs import TASKS, good_config

# What the training does not read.
_UNREAD = ('test_', 'auto_scale_lr')
_LETTERS = 'abcdefghijklmnopqrstuvwxyz'
Leaf = tuple[str, Any]


def drawn_cases(seed: int = 0) -> list[Case]:
    """Return some mistakes of each kind in each task; the same seed gives the same ones."""
    cases = []
    for task in TASKS:
        leaves = list(_leaves(good_config(task)))
        for kind, number, fits, spoil in _KINDS:
            # Each kind draws on its own, so that a change of one leaves the others as they are.
            rng = random.Random(f'{seed} {task} {kind}')
            places = [leaf for leaf in leaves if fits(*leaf)]
            for key, value in rng.sample(places, min(number, len(places))):
                cases.append(spoil(task, key, value, rng))
    return cases


def _leaves(part: Any, place: str = '') -> Iterator[Leaf]:
    """Yield the dotted key and the value of everything below a part of a config."""
    items = enumerate(part) if isinstance(part, list) else getattr(part, 'items', list)()
    for key, value in items:
        inner = f'{place}.{key}' if place else str(key)
        if not inner.startswith(_UNREAD):
            yield inner, value
            yield from _leaves(value, inner)


def misspelt(word: str, rng: random.Random) -> str:
    """Return a word with one letter more, less, or another one."""
    while True:
        at, letter = rng.randrange(1, len(word)), rng.choice(_LETTERS)
        other = rng.choice(
            [
                word[:at] + word[at + 1 :],
                word[:at] + letter + word[at:],
                word[:at] + letter + word[at + 1 :],
            ]
        )
        if other != word and other:
            return other


def _setting(task: str, key: str, wrong: Any) -> Case:
    def spoil(scene: Scene) -> None:
        # A copy, since a spoiled list may be that of the config.
        scene.set(key, copy.deepcopy(wrong))

    return Case(task, f'`{key} = {wrong!r}`', spoil)


def _misspell_type(task: str, key: str, value: Any, rng: random.Random) -> Case:
    return _setting(task, key, misspelt(value, rng))


def _misspell_option(task: str, key: str, value: Any, rng: random.Random) -> Case:
    options = [name for name in value if name not in ('type', '_scope_')]
    name = rng.choice(options)
    wrong = misspelt(name, rng)

    def spoil(scene: Scene) -> None:
        part = scene.get(key)
        part[wrong] = part.pop(name)

    return Case(task, f'`{key}.{wrong}` in place of `{name}`', spoil)


def _write_string(task: str, key: str, value: Any, rng: random.Random) -> Case:
    return _setting(task, key, rng.choice([str(value), 'many']))


def _write_none(task: str, key: str, value: Any, rng: random.Random) -> Case:
    return _setting(task, key, None)


def _write_negative(task: str, key: str, value: Any, rng: random.Random) -> Case:
    return _setting(task, key, -value)


def _write_nan(task: str, key: str, value: Any, rng: random.Random) -> Case:
    return _setting(task, key, float(rng.choice(['nan', 'inf'])))


def _write_list(task: str, key: str, value: Any, rng: random.Random) -> Case:
    return _setting(task, key, [value, value])


def _shorten(task: str, key: str, value: Any, rng: random.Random) -> Case:
    return _setting(task, key, value[:-1])


def _is_number(key: str, value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_type(key: str, value: Any) -> bool:
    return key.rpartition('.')[2] == 'type'


def _has_options(key: str, value: Any) -> bool:
    return isinstance(value, dict) and 'type' in value and bool(value.keys() - {'type', '_scope_'})


def _is_list(key: str, value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0


def _is_required(key: str, value: Any) -> bool:
    return value is not None and not key.startswith('env_cfg')


def _is_positive(key: str, value: Any) -> bool:
    return _is_number(key, value) and value > 0


def _is_float(key: str, value: Any) -> bool:
    return isinstance(value, float)


_KINDS: list[tuple[str, int, Callable[[str, Any], bool], Callable[..., Case]]] = [
    ('type', 10, _is_type, _misspell_type),
    ('option', 8, _has_options, _misspell_option),
    ('string', 10, _is_number, _write_string),
    ('none', 6, _is_required, _write_none),
    ('negative', 6, _is_positive, _write_negative),
    ('nan', 4, _is_float, _write_nan),
    ('list', 4, _is_number, _write_list),
    ('short', 4, _is_list, _shorten),
]
