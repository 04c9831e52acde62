"""What mmengine logs."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from mmengine.logging import MMLogger


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[..., list[tuple[str, str]]]:
    """Return a function that calls another and returns what mmengine logged: levels, messages."""

    def call(function: Callable[..., None], *args: Any) -> list[tuple[str, str]]:
        # The one that mmengine made last.
        logger = MMLogger.get_current_instance()
        logger.addHandler(caplog.handler)
        caplog.clear()
        with caplog.at_level(logging.INFO, logger.name):
            function(*args)
        logger.removeHandler(caplog.handler)
        return [(record.levelname, record.getMessage()) for record in caplog.records]

    return call
