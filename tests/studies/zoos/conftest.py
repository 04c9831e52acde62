"""The zoos that are installed."""

import pytest


@pytest.fixture(params=['mmdet', 'mmseg', 'mmpretrain'])
def toolbox(request: pytest.FixtureRequest) -> str:
    """Return the name of each toolbox in turn."""
    pytest.importorskip(request.param)
    return request.param
