"""The changes of a config that a command line gives as KEY=VALUE."""

import argparse
import re
from collections.abc import Sequence
from typing import Any

from mmengine.config import DictAction


class CfgOptions(argparse.Action):
    """Read KEY=VALUE as mmengine does, but keep paths whole, and refuse what it would misread."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option: str | None = None,
    ) -> None:
        options = dict(getattr(namespace, self.dest) or {})
        for value in values or ():
            key, sign, given = value.partition('=')
            if not sign:
                parser.error(f'--cfg-options takes KEY=VALUE, not {value!r}.')
            options[key] = _read(parser, key, given)
        setattr(namespace, self.dest, options)


def _read(parser: argparse.ArgumentParser, key: str, given: str) -> Any:
    quoted = re.fullmatch(r'([\'"])(.*)\1', given)
    if key == 'load_from' and given != 'None':
        # One path, whatever is in it.
        return quoted[2] if quoted else given
    text = given.strip('\'" ')
    if 'dict(' in text or text.lstrip('[( ').startswith('{'):
        parser.error(
            f'--cfg-options cannot read a dict, as {key} is given: set its keys one by one, as '
            f'{key}.type=SN.'
        )
    is_list = ',' in text or (text[:1], text[-1:]) in {('(', ')'), ('[', ']')}
    if ' ' in text and not is_list:
        # mmengine removes every space, also from paths and names.
        return quoted[2] if quoted else given
    try:
        return DictAction._parse_iterable(given)
    except (AssertionError, RecursionError):
        parser.error(
            f'--cfg-options cannot read {given!r}: write a list as {key}="[a,b]", or set {key} in '
            'the config.'
        )
