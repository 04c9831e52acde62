"""Configs of the toolboxes' model zoos by name, such as ``mmdet::retinanet/….py``."""

from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

from sn_openmmlab.errors import UsageError

TOOLBOXES = ('mmdet', 'mmseg', 'mmpretrain')


def zoo_folder(toolbox: str) -> Path:
    """Return the folder of the configs that are installed with a toolbox.

    mmengine finds it by the name of the distribution, and installs another one over a distribution
    of another name.

    Raises:
        UsageError: the toolbox is unknown or not installed, or it was installed without configs.
    """
    if toolbox not in TOOLBOXES:
        raise UsageError(f'{toolbox}:: names no toolbox: write one of {", ".join(TOOLBOXES)}.')
    spec = find_spec(toolbox)
    if spec is None:
        raise UsageError(f'{toolbox} is not installed here.')
    # A checkout that pip installed in editable mode has them beside the package.
    package = Path(spec.origin).parent
    for folder in (package / '.mim' / 'configs', package.parent / 'configs'):
        if folder.is_dir():
            return folder
    raise UsageError(f'{toolbox} was installed without its configs: name the path of a config.')


def find_config(name: str) -> Path:
    """Return the file of a config in a zoo.

    Args:
        name: as ``mmdet::retinanet/retinanet_r50_fpn_1x_coco.py``; the suffix may be left out.

    Raises:
        UsageError: there is no such config; the message names a similar one if there is any.
    """
    toolbox, _, rest = name.partition('::')
    folder = zoo_folder(toolbox)
    path = folder / (rest if rest.endswith('.py') else f'{rest}.py')
    if path.is_file():
        return path
    by_stem = {file.stem: file for file in folder.rglob('*.py') if '_base_' not in file.parts}
    close = get_close_matches(path.stem, by_stem, n=1)
    hint = f': they are in {folder}.'
    if close:
        hint = f': do you mean {toolbox}::{by_stem[close[0]].relative_to(folder)}?'
    raise UsageError(f'the zoo of {toolbox} has no config {rest}{hint}')
