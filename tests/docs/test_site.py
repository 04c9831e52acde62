"""The site builds in strict mode and loads nothing from other hosts."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip('mkdocs')
pytest.importorskip('mkdocstrings')

LOADS = re.compile(r'<(?:script|img|link|iframe)\b[^>]*(?:src|href)="?([^">\s]+)')


@pytest.fixture(scope='module')
def site(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site in strict mode and return its folder."""
    folder = tmp_path_factory.mktemp('site')
    done = subprocess.run(
        [sys.executable, '-m', 'mkdocs', 'build', '--strict', '--quiet', '-d', folder],
        cwd=repo,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_nothing_is_loaded_from_other_hosts(site: Path) -> None:
    pages = list(site.rglob('*.html'))
    assert len(pages) > 30
    for page in pages:
        loaded = re.findall(
            r'<(?:script|img|link|iframe)\b[^>]*(?:src|href)="?([^">\s]+)', page.read_text()
        )
        assert loaded
        assert not [address for address in loaded if re.match(r'(https?:)?//', address)]
    styles = ''.join(file.read_text() for file in site.rglob('*.css'))
    assert not re.findall(r'(?:url\(|@import)\s*["\']?(?:https?:)?//', styles)


def test_search_finds_the_layer(site: Path) -> None:
    index = (site / 'search/search_index.json').read_text()
    assert 'reference/layers/#sn_openmmlab.SwitchNorm' in index


def test_links_between_docs_and_configs_work_in_the_site(site: Path) -> None:
    page = (site / 'guides/weights/index.html').read_text()
    assert 'href="../../configs/detection/faster_rcnn/"' in page
    page = (site / 'configs/index.html').read_text()
    assert 'href="../guides/own_boxes/"' in page


def test_links_to_files_that_the_site_lacks_become_text(site: Path) -> None:
    page = (site / 'configs/detection/faster_rcnn/index.html').read_text()
    assert 'faster-rcnn_r50_fpn_sn-all_1x_coco' in page
    assert not re.findall(r'href="[^"]*\.py"', page)


def test_no_role_of_another_markup_is_left(site: Path) -> None:
    for page in (site / 'reference').rglob('*.html'):
        assert not re.findall(r':(?:class|func|meth|mod):', page.read_text()), page
