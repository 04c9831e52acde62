"""The scopes whose statistics a layer can mix: the one table that defines them.

To add a scope, add a row here and a branch to `kernels/plain/scopes.py`. The `'aten'` backend
reads this table. The `'triton'` backend declares which scopes it fuses; the op runs the others on
`'aten'`.
"""

from typing import NamedTuple


class Scope(NamedTuple):
    """Describe which entries of the (N, C) table of instance moments are pooled together.

    Only `'bn'` may pool dimension 0: the layer synchronises and tracks its moments, and passes the
    tracked ones in for evaluation.
    """

    dims: tuple[int, ...]
    """The pooled dimensions of the table; none for the instances themselves."""
    grouped: bool
    """Whether the channels are pooled within each of `num_groups` groups."""
    color: str
    """The colour in charts. All differ in lightness, so that they can be told apart in grey."""


# In the order in which charts and messages show them.
SCOPES = {
    'in': Scope(dims=(), grouped=False, color='#004a80'),
    'gn': Scope(dims=(1,), grouped=True, color='#b0558a'),
    'ln': Scope(dims=(1,), grouped=False, color='#2fae87'),
    'bn': Scope(dims=(0,), grouped=False, color='#f5c54e'),
}
