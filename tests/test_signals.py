"""No test leaves a signal handler to the next, which would end pytest in another place."""

import signal
from collections.abc import Iterator

import pytest

# This file is imported before the first test runs.
HANDLERS = {
    number: signal.getsignal(number) for number in (signal.SIGPIPE, signal.SIGTERM, signal.SIGINT)
}


@pytest.fixture(scope='module')
def leftover() -> Iterator[None]:
    """A fixture that outlives the first test and leaves handlers."""
    for number in HANDLERS:
        signal.signal(number, lambda *_: pytest.fail('the handler of another test was called'))
    yield


def test_handlers_are_left(leftover: None) -> None:
    for number in HANDLERS:
        signal.signal(number, lambda *_: None)


@pytest.mark.parametrize('number', HANDLERS)
def test_handlers_are_those_before_the_tests(leftover: None, number: signal.Signals) -> None:
    assert signal.getsignal(number) == HANDLERS[number]
