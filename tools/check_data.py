"""Check the data of a config, as a training does before it starts, and on request every file.

python tools/check_data.py CONFIG --decode
"""

import _sleeping_threads  # noqa: F401
from mmengine.registry import init_default_scope

from sn_openmmlab.errors import UsageError, exit_with_sentence
from sn_openmmlab.runs.command_line import config_of, config_parser
from sn_openmmlab.runs.data.check import check_data
from sn_openmmlab.runs.data.decode import read_all

LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')


def main() -> None:
    parser = config_parser(__doc__.split('\n')[0])
    parser.add_argument(
        '--decode',
        action='store_true',
        help='read every image and label map by the loading steps of the config, and list those '
        'that cannot be read',
    )
    args = parser.parse_args()

    config = config_of(args)
    check_data(config, *LOADERS)
    if not args.decode:
        print('The data are complete; --decode reads every file, too.')
        return
    init_default_scope(config.default_scope)
    read = read_all(config, *LOADERS)
    for reason in read.not_read:
        print(f'Not read: {reason}.')
    for fault in read.faults:
        print(f'{fault}.')
    if read.faults:
        raise UsageError(
            f'{len(read.faults)} of {read.files} files cannot be used; they are listed above. '
            'Replace them or take them out of the data, or train with --bad-images skip.'
        )
    print(f'All {read.files} files can be read.')


if __name__ == '__main__':
    exit_with_sentence(main)
