"""What the tests of the checks of the data share: a config with one loader, and its sentence."""

import pytest
from mmengine.config import Config

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.data.check import check_data


def check_loader(toolbox: str, part: object, loader: str = 'train_dataloader') -> None:
    """Check a config of a toolbox whose loader reads ``part``."""
    check_data(Config({'default_scope': toolbox, loader: dict(batch_size=2, dataset=part)}), loader)


def sentence_about(toolbox: str, part: object, loader: str = 'train_dataloader') -> str:
    """Return the sentence about a config of a toolbox whose loader reads ``part``."""
    with pytest.raises(UsageError) as caught:
        check_loader(toolbox, part, loader)
    assert '\n' not in str(caught.value)
    return str(caught.value)
