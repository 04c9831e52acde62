"""The pages, and the commands and Python blocks in them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATTERNS = ('README.md', 'CONTRIBUTING.md', 'docs/**/*.md', 'configs/**/README.md')
FOUND = [page for pattern in PATTERNS for page in sorted(ROOT.glob(pattern))]
# A note beside the pictures is no page.
PAGES = [page for page in FOUND if 'images' not in page.parts]
# Without the tables that the studies write, whose lines nobody wraps.
WRITTEN = [page for page in PAGES if page.name not in ('tables.md', 'kept.md', 'cpu.md')]

_FENCE = re.compile(r'^( *)```(\w+)[^\n]*\n(.*?)^ *```', re.MULTILINE | re.DOTALL)


def blocks(page: Path, *languages: str) -> list[str]:
    """Return the fenced blocks of a page in the given languages."""
    found = _FENCE.findall(page.read_text())
    return [text for _, language, text in found if language in languages]


def commands() -> list[str]:
    """Return each different command line of all pages."""
    text = ''.join(block for page in PAGES for block in blocks(page, 'bash', 'sh', 'console'))
    lines = [line.strip() for line in text.replace('\\\n', ' ').splitlines()]
    return list(dict.fromkeys(line for line in lines if line and not line.startswith('#')))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give the pages to `any_page` and `written_page`, the commands to `command`."""
    for name, pages in (('any_page', PAGES), ('written_page', WRITTEN)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, pages, ids=lambda page: str(page.relative_to(ROOT)))
    if 'command' in metafunc.fixturenames:
        metafunc.parametrize('command', commands())


@pytest.fixture(scope='session')
def python_blocks(repo: Path) -> dict[Path, list[str]]:
    """Return the Python blocks of each page that has any."""
    found = {page: blocks(page, 'python') for page in PAGES}
    return {page: texts for page, texts in found.items() if texts}


@pytest.fixture(scope='session')
def all_commands() -> list[str]:
    """Return each different command line of all pages."""
    return commands()
