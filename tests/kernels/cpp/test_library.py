"""The compiled operators are taken if they fit this torch, and missed with a reason."""

import pytest
import torch

from sn_openmmlab.kernels.cpp import library


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(library, 'FOLDER', tmp_path)
    return tmp_path


def _why():
    reason = library.why_missing.__wrapped__()
    assert '\n' not in reason
    return reason


def test_a_build_is_named_after_its_torch():
    assert library.library_name('2.13.0+cpu').startswith('_torch_2_13_0_cpu_')
    assert library.library_name('2.13.0') != library.library_name('2.13.0+cu130')


@pytest.mark.parametrize(
    'change',
    [
        lambda folder: (folder / 'mix.cpp').write_text('another'),
        lambda folder: (folder / 'mix.cpp').rename(folder / 'mixed.cpp'),
        lambda folder: (folder / 'new.h').touch(),
        lambda folder: (folder / 'loops.h').unlink(),
    ],
    ids=['content', 'name', 'more', 'less'],
)
def test_a_build_is_named_after_its_sources(change, tmp_path, monkeypatch):
    for name in ('mix.cpp', 'loops.h'):
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(library, 'SOURCES', tmp_path)
    before = library.library_name('2.13.0')
    assert library.library_name('2.13.0') == before

    change(tmp_path)

    assert library.library_name('2.13.0') != before


def test_a_package_without_its_sources_has_no_build(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(library, 'SOURCES', tmp_path / 'none')

    assert 'were not built' in _why()


def test_a_build_from_other_sources_is_not_loaded(folder):
    name = library.library_name(torch.__version__)[:-1]
    (folder / f'{name}.so').write_text('cannot be loaded')

    assert 'or from other sources' in _why() and 'install sn_openmmlab again' in _why()


def test_without_a_build_the_reason_says_how_to_get_one(folder):
    assert 'were not built' in _why() and '--no-build-isolation' in _why()


def test_a_build_for_another_torch_is_not_loaded(folder):
    (folder / '_torch_2_12_0_cpu.so').write_text('cannot be loaded')

    assert f'another torch than {torch.__version__}' in _why()


def test_a_build_that_cannot_be_loaded_is_missed_with_the_systems_reason(folder):
    file = folder / f'{library.library_name(torch.__version__)}.so'
    file.write_text('not a library')

    assert 'cannot be loaded' in _why() and file.name in _why()
