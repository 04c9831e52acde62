"""Links, pictures and paths on the pages lead to something, and lines are wrapped."""

import re
from pathlib import Path

LINK = re.compile(r'!?\[[^\]]*\]\(([^)\s]+)\)')
PATH = re.compile(r'`((?:sn_openmmlab|studies|tools|tests|configs|docs|examples|\.ci)/[^`\s]*)`')


def slug(heading: str) -> str:
    """Return the anchor of a heading."""
    bare = re.sub(r'[^\w\- ]', '', heading.strip().lower())
    return re.sub(r'[- ]+', '-', bare)


def expand(path: str) -> list[str]:
    """Return the paths that a path with braces stands for."""
    found = re.search(r'\{([^{}]*,[^{}]*)\}', path)
    if not found:
        return [path]
    return [
        other
        for part in found[1].split(',')
        for other in expand(path[: found.start()] + part + path[found.end() :])
    ]


def test_links_lead_somewhere(any_page: Path) -> None:
    for link in LINK.findall(any_page.read_text()):
        if link.startswith('https://'):
            continue
        target, _, anchor = link.partition('#')
        file = any_page.parent / target if target else any_page
        assert file.exists(), link
        # Those with dots are names in the reference, which the strict build checks.
        if anchor and '.' not in anchor:
            headings = re.findall(r'^#+ (.*)$', file.read_text(), re.MULTILINE)
            assert anchor in map(slug, headings), link


def test_paths_exist(any_page: Path, repo: Path) -> None:
    for path in PATH.findall(any_page.read_text()):
        for one in expand(path):
            # Placeholders of the recipes.
            pattern = re.sub('NAME|MODEL', '*', one.rstrip('/'))
            assert any(repo.glob(pattern)), one


def test_pages_that_code_names_exist(repo: Path) -> None:
    named = []
    for folder in ('sn_openmmlab', 'tools', 'studies', 'configs', 'examples', 'tests'):
        for file in (repo / folder).rglob('*.py'):
            found = re.findall(r'\bdocs/[\w/]+\.md', file.read_text())
            named += [(file, page) for page in found]
    assert named
    assert [(file, page) for file, page in named if not (repo / page).is_file()] == []


def test_lines_are_wrapped(written_page: Path) -> None:
    text = re.sub(r'^ *```.*?^ *```', '', written_page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for line in text.splitlines():
        # Rows of tables, pictures and long names cannot be broken.
        fixed = line.startswith('|') or '![' in line or ' ' not in line.strip('->* ')
        assert fixed or len(line) <= 100, line
        # A sentence that ends in a number must not end up as the start of a list.
        assert not re.match(r' *[0-9]{2,}\. | +[0-9]\. ', line), line
