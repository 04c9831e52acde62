"""Switchable Normalization for OpenMMLab: importing this package registers ``SN``.

The tensor functions and the layer need torch alone; where mmengine is installed, by either of its
distributions, its root registry learns the layer, and with it every toolbox.
"""

from importlib.util import find_spec

from sn_openmmlab.layers.switch_norm import SwitchNorm

__all__ = ['SwitchNorm']
__version__ = '0.1.0'

if find_spec('mmengine') is not None:
    from sn_openmmlab import registration  # noqa: F401
