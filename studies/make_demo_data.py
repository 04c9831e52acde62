"""Make the demo data set: handwritten digits on photographs."""

import argparse
import signal
import sys

from studies.demo.dataset import DemoParameters, make_demo_data


def main(arguments: list[str] | None = None) -> None:
    """Run the command line on `arguments`; exit with code 2 and one sentence on an error."""
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
    except (ValueError, ImportError, OSError) as error:
        # As exit_with_sentence does, whose package imports torch. Making the data needs no torch.
        parser.exit(2, f'error: {error}\n')
    print(f'{"Found" if data.reused else "Made"} the demo data in {data.root}:')
    for split, images in (('train', parameters.train), ('val', parameters.val)):
        print(f'  {split}: {images} images with {data.instances[split]} digits')


if __name__ == '__main__':
    # So that a terminated run removes its unfinished folder.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    main()
