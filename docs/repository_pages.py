"""What MkDocs cannot do by itself: pages and links that leave the folder docs/.

The READMEs of configs/, CONTRIBUTING.md and CHANGELOG.md become pages of the site where they are.
Links are written as they work in the repository, and are made to work in the site: a link to a page
leads to it, and a link to any other file, which the site does not have, becomes its path. A link
to nothing stays, so that strict mode finds it.
"""

import os.path
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / 'docs'
ELSEWHERE = ('CONTRIBUTING.md', 'CHANGELOG.md', 'configs/**/README.md')

_LINK = re.compile(r'(!?)\[([^\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie outside docs/."""
    for pattern in ELSEWHERE:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: Any) -> str:
    """Let the links of a page lead to where the site has their targets."""
    name = page.file.src_uri
    source = DOCS / name if (DOCS / name).is_file() else ROOT / name
    return _LINK.sub(lambda link: _relink(link, source, name, files), markdown)


def _relink(link: re.Match, source: Path, name: str, files: Files) -> str:
    mark, text, target, anchor = link.groups(default='')
    path = Path(os.path.normpath(source.parent / target))
    if not path.exists() or not path.is_relative_to(ROOT):
        return link[0]
    shown = path.relative_to(ROOT).as_posix()
    uri = path.relative_to(DOCS).as_posix() if path.is_relative_to(DOCS) else shown
    if files.get_file_from_path(uri):
        return f'{mark}[{text}]({os.path.relpath(uri, os.path.dirname(name))}{anchor})'
    return text if path.stem in text else f'{text} (`{shown}`)'
