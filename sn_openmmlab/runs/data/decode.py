"""The check that every file of the data can be read, which takes as long as reading them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mmengine.config import Config
from mmengine.dataset import BaseDataset
from mmengine.registry import TRANSFORMS
from rich.console import Console
from rich.progress import track
from torch.utils.data import DataLoader, Dataset

from sn_openmmlab.config_tree import walk
from sn_openmmlab.runs.data.checked_loading import file_key, unreadable, wrong_size
from sn_openmmlab.runs.data.datasets import datasets_in, open_dataset, registered


@dataclass(frozen=True)
class Reading:
    """What reading all files of a config found.

    Attributes:
        files: how many were read, each once.
        faults: a sentence, without its end, about each file that cannot be read.
        not_read: the datasets that were not read, and why.
    """

    files: int
    faults: list[str]
    not_read: list[str]


def read_all(config: Config, *loaders: str) -> Reading:
    """Read every image and label map of a config by the loading steps of its own pipelines.

    It shows a progress bar, and reads in as many processes as the loader of the training has. The
    default scope must be that of the config.

    Args:
        config: of the run.
        loaders: the data loaders whose data are read, such as ``'train_dataloader'``. Those that
            the config lacks are skipped.
    """
    files, not_read = _Files(), []
    for loader in loaders:
        for settings in datasets_in((config.get(loader) or {}).get('dataset')):
            if reason := files.add(settings, config.default_scope):
                not_read.append(f'{settings.get("type")} in the {loader}, {reason}')
    workers = (config.get('train_dataloader') or {}).get('num_workers', 0)
    reader = DataLoader(files, batch_size=None, num_workers=min(workers, len(files)))
    console = Console(stderr=True)
    shown = track(reader, 'reading', total=len(files), console=console, transient=True)
    faults = [fault for fault in shown if fault]
    return Reading(len(files), faults, list(dict.fromkeys(not_read)))


class _Files(Dataset):
    """The files of some datasets, each with the step that reads it; an item is its fault, or ''."""

    def __init__(self) -> None:
        self._steps: list[Any] = []
        self._items: list[tuple[int, str, dict]] = []
        self._seen: set[tuple[str, str]] = set()

    def add(self, settings: Mapping[str, Any], toolbox: str) -> str | None:
        """Add the files of a dataset; return why that cannot be done, if so."""
        steps = [step for _, step in walk(settings.get('pipeline')) if file_key(step)]
        if not steps:
            return None
        kind = registered(settings, 'DATASETS', toolbox)
        if kind is None or not issubclass(kind, BaseDataset):
            # The datasets in a wrapper have steps of their own.
            return None if kind and _wraps(settings) else 'which is no dataset of mmengine'
        dataset = open_dataset(kind, dict(settings))
        if dataset is None:
            return 'which cannot be built here, or names no local files'
        for step in steps:
            self._add_files(dataset, step)
        return None

    def _add_files(self, dataset: BaseDataset, step: Mapping[str, Any]) -> None:
        key, number = file_key(step), len(self._steps)
        self._steps.append(TRANSFORMS.build(dict(step)))
        for item in _items(dataset):
            file = item.get(key)
            if isinstance(file, str) and (file, repr(step)) not in self._seen:
                self._seen.add((file, repr(step)))
                self._items.append((number, file, item))

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> str:
        number, file, item = self._items[index]
        try:
            loaded = self._steps[number](dict(item))
        except Exception as error:
            return unreadable(file, error)
        return wrong_size(file, item, loaded) if loaded is not None else unreadable(file, None)


def _wraps(settings: Mapping[str, Any]) -> bool:
    return 'dataset' in settings or 'datasets' in settings


def _items(dataset: BaseDataset) -> Iterator[dict]:
    for index in range(len(dataset)):
        yield dataset.get_data_info(index)
