"""CONTRIBUTING.md names targets that exist; tests/docs holds its paths to the repository."""

import re
from pathlib import Path

import pytest


@pytest.fixture(scope='module')
def page(repo: Path) -> str:
    """Return the text of CONTRIBUTING.md."""
    return (repo / 'CONTRIBUTING.md').read_text()


def test_its_targets_are_in_the_makefile(page, repo):
    targets = set(re.findall(r'^([a-z-]+):', (repo / 'Makefile').read_text(), re.MULTILINE))
    named = set(re.findall(r'\bmake ([a-z-]+)', page))

    assert {'env', 'lint', 'test', 'docs', 'coverage', 'test-slow'} <= named <= targets
