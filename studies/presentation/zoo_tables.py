"""The tables of the zoos: which configs build with SN, and which models train a step."""

from collections.abc import Iterable, Sequence

from studies.presentation.markdown import group_by, table
from studies.zoos.records import Record, Run

NOT_A_MODEL, FAILS = 'no_model', 'fails'


def zoo_tables(runs: Sequence[Run]) -> str:
    """Return a page with the tables of all runs."""
    surveys = [run for run in runs if run.part != 'steps']
    steps = [run for run in runs if run.part == 'steps']
    parts = [
        '# The zoos\n\nFrom the records beside this file, by `python -m studies.zoo`.',
        f'## Building\n\n{build_table(surveys)}',
        f'## What does not build as it is\n\n{reason_table(surveys, FAILS)}',
        f'## What is no config of a model\n\n{reason_table(surveys, NOT_A_MODEL)}',
        f'## What does not become SN\n\n{_left(surveys)}',
        *(f'## A training step ({run.stack})\n\n{step_table(run)}' for run in steps),
    ]
    return '\n\n'.join(parts) + '\n'


def build_table(surveys: Iterable[Run]) -> str:
    """Return how many configs build as they are and with SN, a row for each zoo and stack."""
    columns = {
        'configs': lambda runs: _count(runs, lambda record: NOT_A_MODEL not in record),
        'build here': lambda runs: _count(runs, lambda record: 'norms' in record),
        'of them with BN, SyncBN or GN': lambda runs: _count(runs, has_norms),
        'build with SN': lambda runs: _count(runs, lambda record: 'sn' in record),
        'all of these layers SN': lambda runs: _count(runs, is_all_sn),
        'layers': lambda runs: str(sum(r.get('sn', 0) for r in _records(runs))),
        'CPU minutes': lambda runs: f'{sum(r["cpu_seconds"] for r in _records(runs)) / 60:.1f}',
    }
    return table(surveys, ['zoo', 'stack'], _name, columns)


def reason_table(surveys: Iterable[Run], key: str) -> str:
    """Return the reasons under a key of the records with their number, and one config for each."""
    found = [(run, record) for run in surveys for record in run.records if key in record]
    columns = {
        'configs': lambda group: str(len(group)),
        'for example': lambda group: f'`{group[0][1]["config"]}`',
    }
    return table(
        found, ['zoo', 'stack', 'why'], lambda item: (*_name(item[0]), item[1][key]), columns
    )


def step_table(run: Run) -> str:
    """Return a row for each config of the sample, with its outcome at two images and at one."""
    lines = [
        [
            f'`{record["toolbox"]}::{record["config"]}`',
            str(record['size']),
            str(record['2'].get('norms', '')),
            outcome(record['2']),
            outcome(record['1']),
        ]
        for record in run.records
    ]
    header = ['config', 'pixels', 'SN layers', 'two images', 'one image']
    rows = [header, ['---'] * len(header), *lines]
    return '\n'.join(f'| {" | ".join(row)} |' for row in rows)


def outcome(result: Record) -> str:
    """Say in a few words what a step gave."""
    own = result.get('own', {})
    if 'fails' in result:
        also = 'and so do its own norms' if 'fails' in own else 'its own norms train'
        return f'fails ({result["fails"]}), {also}'
    if not result['finite']:
        return 'not finite'
    words = ['trains, its own norms fail' if 'fails' in own else 'trains']
    if unreached := result.get('unreached', []):
        words.append(f'{_layers_in_words(unreached)} without a gradient')
        if 'fails' not in own:
            same = 'as' if own.get('unreached') == unreached else 'unlike'
            words[-1] += f', {same} with its own norms'
    if fixed := result.get('fixed'):
        words.append(f'{_layers_in_words(fixed)} whose ratios have none')
    return '; '.join(words)


def _layers_in_words(names: Sequence[str]) -> str:
    return f'{len(names)} layer' if len(names) == 1 else f'{len(names)} layers'


def has_norms(record: Record) -> bool:
    """Return whether a model builds and has a BN, SyncBN or GN."""
    return bool(record.get('norms'))


def is_all_sn(record: Record) -> bool:
    """Return whether each of the BN, SyncBN and GN layers of a model became SN."""
    return 'sn' in record and 'left' not in record and record['sn'] == _layers(record)


def _left(surveys: Iterable[Run]) -> str:
    lines = []
    for run in surveys:
        records = [r for r in run.records if has_norms(r) and not is_all_sn(r)]
        for why, group in group_by(records, _why).items():
            what = f'{len(group)} configs, such as `{group[0]["config"]}`'
            lines.append(f'- {" ".join(_name(run))}: {what}: {why}')
    return '\n'.join(lines) or 'Every layer does.'


def _why(record: Record) -> str:
    if 'sn_fails' in record:
        return record['sn_fails']
    left = [f'{number} {kind}' for kind, number in record.get('left', {}).items()]
    return ', '.join(left) or f'{record["sn"]} SN layers for {_layers(record)}'


def _layers(record: Record) -> int:
    return sum(record['norms'].values())


def _count(runs: Sequence[Run], holds: object) -> str:
    return str(sum(map(holds, _records(runs))))


def _records(runs: Sequence[Run]) -> list[Record]:
    return [record for run in runs for record in run.records]


def _name(run: Run) -> tuple[str, str]:
    return run.part, run.stack
