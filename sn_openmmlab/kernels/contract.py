"""What a layer mixes."""

from typing import NamedTuple


class Mixture(NamedTuple):
    """The scopes in the order of their control parameters, the groups of ``'gn'``, and ε."""

    scopes: tuple[str, ...]
    num_groups: int
    eps: float
