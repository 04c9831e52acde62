"""The project's metadata, for the tests that compare it with the code."""

from pathlib import Path

import pytest

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib


@pytest.fixture(scope='session')
def project(repo: Path) -> dict:
    """Return the table ``project`` of pyproject.toml."""
    return tomllib.loads((repo / 'pyproject.toml').read_text())['project']
