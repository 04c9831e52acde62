"""Make the demo data set: handwritten digits on photographs."""

import argparse
import signal
import sys

from studies.demo.dataset import DemoFolderError, DemoParameters, make_demo_data


def main(arguments: list[str] | None = None) -> int:
    """Run the command line on ``arguments``; returns 0, or 2 after a one-sentence error."""
    default = DemoParameters()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--out', default='data/demo', help='folder to make (%(default)s)')
    parser.add_argument(
        '--train', type=int, default=default.train, help='train images (%(default)s)'
    )
    parser.add_argument('--val', type=int, default=default.val, help='val images (%(default)s)')
    parser.add_argument('--seed', type=int, default=default.seed, help='seed (%(default)s)')
    args = parser.parse_args(arguments)
    try:
        parameters = DemoParameters(train=args.train, val=args.val, seed=args.seed)
        data = make_demo_data(args.out, parameters)
    except (DemoFolderError, ValueError, ImportError, FileNotFoundError) as error:
        print(f'make_demo_data: {error}', file=sys.stderr)
        return 2
    print(f'{"Found" if data.reused else "Made"} the demo data in {data.root}:')
    for split, images in (('train', parameters.train), ('val', parameters.val)):
        print(f'  {split}: {images} images with {data.instances[split]} digits')
    return 0


if __name__ == '__main__':
    # Without this, a terminated run would leave its unfinished folder behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
