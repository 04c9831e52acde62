"""Finding and reading the configs that come with an installed toolbox."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from mmengine.config import Config

from sn_openmmlab.config_tree import walk

TOOLBOXES = ('mmdet', 'mmseg', 'mmpretrain')
_FILES = ('pretrained', 'teacher_ckpt')


def zoo_folder(toolbox: str) -> Path:
    """Return the folder of the configs of an installed toolbox."""
    return Path(find_spec(toolbox).origin).parent / '.mim' / 'configs'


def find_configs(toolbox: str) -> Iterator[str]:
    """Yield the path of each config in the folder of its zoo, in order, without ``_base_``."""
    folder = zoo_folder(toolbox)
    for file in sorted(folder.rglob('*.py')):
        path = file.relative_to(folder)
        if '_base_' not in path.parts:
            yield path.as_posix()


def read_zoo_config(toolbox: str, path: str) -> Config:
    """Read a config of a zoo, its model without weights from other places.

    Pretrained weights and checkpoints of teachers would be downloaded. The configs of teachers are
    found in the zoo. The model gets the preprocessor that stands at the top of the config, as it
    does from mmengine's runner.
    """
    folder = zoo_folder(toolbox)
    config = Config.fromfile(folder / path)
    config.load_from = None
    # Files that only hold a model name none.
    config.setdefault('default_scope', toolbox)
    if 'model' not in config:
        return config
    for _, part in walk(config.model):
        _drop_weights(part)
        if 'teacher_config' in part:
            part['teacher_config'] = str(folder.parent / part['teacher_config'])
    if config.get('data_preprocessor') is not None:
        config.model.setdefault('data_preprocessor', config.data_preprocessor)
    return config


def _drop_weights(part: dict) -> None:
    part.update({key: None for key in _FILES if isinstance(part.get(key), str)})
    if part.get('pretrained') is True:
        part['pretrained'] = False
    init = part.get('init_cfg')
    if isinstance(init, list | tuple):
        part['init_cfg'] = [one for one in init if 'checkpoint' not in one]
    elif init and 'checkpoint' in init:
        part['init_cfg'] = None
