"""These tests need the compiled kernels."""

import pytest

from sn_openmmlab.kernels.cpp.library import why_missing


@pytest.fixture(autouse=True)
def compiled():
    if why_missing() is not None:
        pytest.skip(why_missing())
