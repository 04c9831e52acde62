"""What all figures of ratios do with the labels that they are given."""

from collections.abc import Callable

import pytest

from sn_openmmlab.analysis.bar_figures import networks_figure, parts_figure
from sn_openmmlab.analysis.course_figure import course_figure
from sn_openmmlab.analysis.importance import LayerRatios, mean_ratios
from sn_openmmlab.analysis.layer_figure import layers_figure
from sn_openmmlab.analysis.ratio_style import shortened
from tests.figure_checks import check_legible, texts_of

LONG = 'work_dirs/faster-rcnn_r50-caffe_fpn_ms-1x_coco_sn-everywhere'


def course(networks: dict) -> object:
    averages = {label: mean_ratios(rows) for label, rows in networks.items()}
    return course_figure({label: {0: ratios, 9: ratios} for label, ratios in averages.items()})


@pytest.mark.parametrize('figure', [parts_figure, networks_figure, layers_figure, course])
def test_any_label_is_shown_as_text(figure: Callable) -> None:
    # A formula that matplotlib does not know, a byte of a file's name that is no text, a long name.
    labels = ['costs 5$ or $\\foo$', 'by\udcffte', LONG]
    rows = [LayerRatios(f'{x}.a', ('in', 'bn'), (0.5, 0.5), (0.5, 0.5)) for x in labels]
    drawn = figure(dict.fromkeys(labels, rows))
    for seen in ('5\\$ or', 'by?te', 'work_dirs'):
        assert any(seen in text for text in texts_of(drawn))
    check_legible(drawn)


def test_short_label_stays_as_it_is() -> None:
    assert shortened('(8, 2) größer') == '(8, 2) größer'
