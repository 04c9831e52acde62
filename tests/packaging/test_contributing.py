"""CONTRIBUTING.md names files and targets that exist."""

import re
from pathlib import Path

import pytest

PLACEHOLDERS = ('NAME', 'MODEL')
FOLDERS = ('configs', 'docs', 'examples', 'sn_openmmlab', 'studies', 'tests', 'tools')


@pytest.fixture(scope='module')
def page(repo: Path) -> str:
    """Return the text of CONTRIBUTING.md."""
    return (repo / 'CONTRIBUTING.md').read_text()


def _braced(path: str) -> list[str]:
    """Return the paths that a path with alternatives in braces stands for."""
    match = re.search(r'\{([^}]*)\}', path)
    if not match:
        return [path]
    return [path.replace(match[0], part) for part in match[1].split(',')]


def test_its_paths_exist(page, repo):
    quoted = re.findall(rf'`((?:{"|".join(FOLDERS)})/[^`\s]*)`', page)
    paths = [path for text in quoted for path in _braced(text)]
    fixed = [path for path in paths if not any(word in path for word in PLACEHOLDERS)]

    assert len(fixed) > 15
    assert [path for path in fixed if not (repo / path).exists()] == []


def test_its_targets_are_in_the_makefile(page, repo):
    targets = set(re.findall(r'^([a-z-]+):', (repo / 'Makefile').read_text(), re.MULTILINE))
    named = set(re.findall(r'\bmake ([a-z-]+)', page))

    assert {'env', 'lint', 'test', 'docs', 'coverage', 'test-slow'} <= named <= targets
