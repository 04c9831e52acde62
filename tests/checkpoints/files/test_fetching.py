"""Checkpoints from the web and from model zoos are read as safely as files."""

import functools
import http.server
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.runner import checkpoint as mmengine_checkpoint

from sn_openmmlab.checkpoints.files.fetching import fetch_checkpoint
from sn_openmmlab.errors import UsageError

SWITCHES = ('TORCH_FORCE_WEIGHTS_ONLY_LOAD', 'TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD')


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        return


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a server that serves `tmp_path`."""
    monkeypatch.setenv('TORCH_HOME', str(tmp_path / 'home'))
    handler = functools.partial(Quiet, directory=tmp_path)
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f'http://127.0.0.1:{server.server_port}'
    server.shutdown()
    server.server_close()


def test_sources_of_every_kind_are_read(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.save({'state_dict': {'a': torch.ones(2)}}, tmp_path / 'weights.pth')
    zoo = {'resnet': f'{address}/weights.pth'}
    monkeypatch.setattr(mmengine_checkpoint, 'get_torchvision_models', lambda: zoo)
    monkeypatch.setattr(mmengine_checkpoint, 'get_external_models', lambda: zoo)
    for source in (
        str(tmp_path / 'weights.pth'),
        tmp_path / 'weights.pth',
        f'{address}/weights.pth',
        'torchvision://resnet',
        'open-mmlab://resnet',
    ):
        assert fetch_checkpoint(source)['state_dict']['a'].tolist() == [1, 1]


@pytest.mark.parametrize('switch', [{}, {SWITCHES[1]: '1'}, {SWITCHES[0]: 'n'}])
def test_nothing_of_a_file_from_the_web_runs_and_the_switches_stay(
    switch: dict, address: str, malicious: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SWITCHES:
        monkeypatch.delenv(name, raising=False)
    for name, value in switch.items():
        monkeypatch.setenv(name, value)
    file, marker = malicious('system', True)
    with pytest.raises(UsageError, match=rf'{address}/{file.name} was not loaded: .* run code\.'):
        fetch_checkpoint(f'{address}/{file.name}')
    assert not marker.exists()
    assert {name: os.environ[name] for name in SWITCHES if name in os.environ} == switch


@pytest.mark.parametrize(
    ('content', 'kind'),
    [
        ([torch.ones(1)], 'list'),
        (torch.ones(1), 'Tensor'),
        (3, 'int'),
        ({0: torch.ones(1)}, 'dict'),
        ({'state_dict': torch.ones(1)}, 'Tensor'),
        ({'state_dict': {0: torch.ones(1)}}, 'dict'),
    ],
)
def test_files_without_weights_by_name_are_refused(
    content: Any, kind: str, address: str, tmp_path: Path
) -> None:
    torch.save(content, tmp_path / 'odd.pth')
    for source in (tmp_path / 'odd.pth', f'{address}/odd.pth'):
        with pytest.raises(UsageError, match=rf'odd\.pth holds no weights by name, but a {kind}\.'):
            fetch_checkpoint(source)


@pytest.mark.parametrize('source', [None, 3, b'weights.pth', ['weights.pth'], {}])
def test_source_that_is_no_name_is_one_sentence(source: Any) -> None:
    with pytest.raises(UsageError, match='must be the name of a file or a URL, not ') as caught:
        fetch_checkpoint(source)
    assert str(caught.value).endswith(f'{source!r}.')


@pytest.mark.parametrize(
    ('source', 'reason'),
    [
        ('{address}/absent.pth', 'HTTPError: .*404'),
        ('{address}/page.pth', 'was not loaded|could not be loaded'),
        ('open-mmlab://absent', 'KeyError: .*absent'),
        ('absent.pth', 'there is no checkpoint file absent.pth'),
    ],
)
def test_source_that_cannot_be_loaded_is_one_sentence(
    source: str, reason: str, address: str, tmp_path: Path
) -> None:
    (tmp_path / 'page.pth').write_text('<!DOCTYPE html><title>404</title>')
    source = source.format(address=address)
    with pytest.raises(UsageError, match=reason) as caught:
        fetch_checkpoint(source)
    message = str(caught.value)
    assert source in message
    assert '\n' not in message
    assert message.endswith('.')
