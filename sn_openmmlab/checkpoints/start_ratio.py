"""The control parameters at which an SN layer starts that replaces a BatchNorm."""

from collections.abc import Sequence

from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.convert.from_batch_norm import start_controls


def controls_at(batch_ratio: float, scopes: Sequence[str]) -> list[float]:
    """Return the control parameters that give `'bn'` the ratio `batch_ratio`, in their order.

    Raises:
        UsageError: `batch_ratio` is not a number in (0, 1], or `scopes` lacks `'bn'`.
    """
    try:
        return start_controls(scopes, batch_ratio)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from error
