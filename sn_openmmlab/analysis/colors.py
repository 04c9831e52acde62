"""The colours of Okabe and Ito, which colour-blind people can tell apart."""

from matplotlib.rcsetup import cycler

_BLUE, _ORANGE, _GREEN = '#0072b2', '#e69f00', '#009e73'
_VERMILLION, _PURPLE, _SKY_BLUE, _YELLOW = '#d55e00', '#cc79a7', '#56b4e9', '#f0e442'

# On white.
LINES = (_BLUE, _ORANGE, _GREEN, _VERMILLION, _PURPLE, _SKY_BLUE)
# Over photographs and below black text.
BOXES = (_ORANGE, _SKY_BLUE, _GREEN, _YELLOW, _VERMILLION, _PURPLE)
# A second round of lines is dashed.
LINE_STYLES = cycler(linestyle=['-', '--']) * cycler(color=LINES)
