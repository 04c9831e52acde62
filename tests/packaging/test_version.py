"""The version of the package stands in one place, ``sn_openmmlab.__version__``."""

import re
from pathlib import Path

import sn_openmmlab


def test_the_metadata_takes_the_version_from_the_package(project):
    assert 'version' not in project
    assert project['dynamic'] == ['version']


def test_the_changelog_opens_with_this_version(repo: Path):
    newest = re.search(r'^## (\S+)', (repo / 'CHANGELOG.md').read_text(), re.MULTILINE)[1]

    assert newest.strip('[]') == sn_openmmlab.__version__
