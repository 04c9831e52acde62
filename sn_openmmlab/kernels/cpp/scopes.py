"""The scopes as the compiled code knows them."""

from functools import cache

# The numbers of `Scope` in csrc/tables.h.
CODES = {'in': 0, 'gn': 1, 'ln': 2, 'bn': 3}


@cache
def codes(scopes: tuple[str, ...]) -> list[int]:
    """Return the numbers of scopes."""
    return [CODES[scope] for scope in scopes]
