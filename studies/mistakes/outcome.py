"""What a tool made of a mistake, and whether that is good."""

import json
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from studies.mistakes.case import Case
from studies.mistakes.running import ROOT, Ran

# Of the time and the name of the run.
# What the decoders of images print by themselves.
_DECODERS = ('[ WARN:', '[ERROR:', 'libpng', 'Corrupt JPEG', 'Premature end')
_STAMP = re.compile(r'^\d+/\d+ [\d:]+ - mmengine - WARNING - ')


@dataclass(frozen=True)
class Outcome:
    """What came of a mistake.

    Attributes:
        name: of the case.
        ends: ``'trains'`` or ``'tests'``, ``'sentence'``, or what is wrong with the end.
        said: the sentence, or the warnings of a run that goes on.
        code: the exit code.
    """

    name: str
    ends: str
    said: list[str] = field(default_factory=list)
    code: int = 0

    @property
    def is_good(self) -> bool:
        return self.ends in ('trains', 'tests', 'sentence')


def judge(case: Case, ran: Ran, folder: Path, usual: set[str]) -> Outcome:
    """Return the outcome of a case.

    Args:
        case: the mistake.
        ran: what the tool did.
        folder: where it ran.
        usual: warnings that a run without a mistake gives, too.
    """
    if ran.code == 2:
        return _stopped(case, ran, folder)
    said = sorted(warnings_of(ran, folder) - usual)
    if ran.code:
        last = (ran.stderr.strip() or ran.stdout.strip()).splitlines()[-1:] or ['']
        return Outcome(case.name, 'traceback', [_plain(last[0], folder)], ran.code)
    ends = 'tests' if case.tool == 'test.py' else 'trains'
    fault = '' if case.tool == 'test.py' else _fault_of_training(folder)
    return Outcome(case.name, fault or ends, said, 0)


def warnings_of(ran: Ran, folder: Path) -> set[str]:
    """Return the warnings of a run, without times and paths of this machine."""
    lines = (ran.stderr + ran.stdout).splitlines()
    found = [_STAMP.sub('', line) for line in lines if _STAMP.match(line)]
    found += [line for line in lines if line.startswith('warning: ')]
    return {_plain(line.removeprefix('warning: '), folder) for line in found}


def _stopped(case: Case, ran: Ran, folder: Path) -> Outcome:
    lines = ran.stderr.strip().splitlines()
    errors = [line for line in lines if line.startswith('error: ')]
    said = [_plain(line.removeprefix('error: '), folder) for line in errors[-1:]]
    others = [line for line in lines if not line.startswith(('error: ', 'warning: ', *_DECODERS))]
    ends = 'sentence'
    if len(errors) != 1 or lines[-1] != errors[0] or 'Traceback' in ran.stderr + ran.stdout:
        ends, said = 'no sentence', [_plain(line, folder) for line in lines[-1:]]
    elif others:
        ends, said = 'more than a sentence', [*said, _plain(others[0], folder)]
    elif left := _left_behind(folder):
        ends, said = f'leaves {left}', said
    return Outcome(case.name, ends, said, 2)


def _left_behind(folder: Path) -> str:
    """Return what a run that stopped has left half-written in its work folder, if anything."""
    work = folder / 'work'
    if not work.is_dir():
        return ''
    files = [file for file in work.rglob('*') if file.is_file()]
    torn = [file for file in files if file.suffix == '.pth' and _fault_of_weights(file)]
    temporary = [file for file in files if file.name.startswith('tmp') or '.tmp' in file.name]
    logs = [] if _trained(work) else [file for file in files if file.suffix in ('.log', '.json')]
    return ', '.join(str(file.relative_to(folder)) for file in [*torn, *temporary, *logs][:1])


def _fault_of_training(folder: Path) -> str:
    works = [file.parent for file in folder.rglob('last_checkpoint')]
    if not works:
        return 'no checkpoint'
    if not all(map(_is_finite, _losses(works[0]))):
        return 'loss is not finite'
    return next((f for file in works[0].glob('*.pth') if (f := _fault_of_weights(file))), '')


def _trained(work: Path) -> bool:
    return bool(_losses(work))


def _losses(work: Path) -> list[Any]:
    files = sorted(work.glob('*/vis_data/scalars.json'))
    entries = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [entry['loss'] for entry in entries if 'loss' in entry]


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) < float('inf')


def _fault_of_weights(file: Path) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            state = torch.load(file, map_location='cpu', weights_only=True).get('state_dict', {})
    except Exception:
        return 'a checkpoint that cannot be read'
    tensors = [tensor for tensor in state.values() if isinstance(tensor, torch.Tensor)]
    finite = all(bool(torch.isfinite(tensor).all()) for tensor in tensors)
    return '' if finite else 'weights are not finite'


def _plain(line: str, folder: Path) -> str:
    """Return a line without the paths of this machine."""
    site = str(Path(torch.__file__).parents[1])
    for path, short in ((f'{folder}/', ''), (str(folder), '.'), (f'{ROOT}/', ''), (f'{site}/', '')):
        line = line.replace(path, short)
    # MMPretrain lists a set, whose order differs from process to process.
    line = re.sub(r' Supported extensions are: .*', '', line)
    return re.sub(r'\d{8}_\d{6}', 'TIME', line)
