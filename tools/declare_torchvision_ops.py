"""Let torchvision be imported where its compiled operators do not load.

``python tools/declare_torchvision_ops.py`` copies this file into the environment of that Python,
which from then on imports the copy whenever it starts. ``make env`` does that.

PyPI's torchvision is built for CUDA, and beside a torch for CPUs alone its operators do not load.
Its own code allows for that, except that it attaches shapes to two operators that then do not
exist, and stops with "operator torchvision::nms does not exist". MMPretrain imports torchvision for
its image transforms and needs no operator of it. So the two operators are declared, without an
implementation, right before torchvision looks for them. Where its operators load, as in any
environment whose torch and torchvision are of one kind, nothing is declared.
"""

import sys

SIGNATURE = '(Tensor dets, Tensor scores, float iou_threshold) -> Tensor'


class Watch:
    """A finder of modules that finds none, but sees which one is imported next."""

    library = None  # torch keeps the declarations as long as this object lives

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> None:
        """Declare the operators when torchvision is about to look for them, but has none."""
        if name != 'torchvision._meta_registrations' or cls.library:
            return
        if not sys.modules['torchvision.extension']._has_ops():
            # Not at the top: this module is loaded whenever Python starts.
            from torch.library import Library

            cls.library = Library('torchvision', 'DEF')
            for operator in ('nms', 'qnms'):
                cls.library.define(operator + SIGNATURE)


def install() -> None:
    """Copy this file into the environment of the running Python, to be imported at each start."""
    import argparse
    import shutil
    import sysconfig
    from pathlib import Path

    argparse.ArgumentParser(description=__doc__.split('\n')[0]).parse_args()
    packages = Path(sysconfig.get_path('purelib'))
    module = Path(shutil.copy(__file__, packages)).stem
    (packages / f'{module}.pth').write_text(f'import {module}\n')


if __name__ == '__main__':
    install()
else:
    sys.meta_path.insert(0, Watch)
