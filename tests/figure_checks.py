"""Checks of what matplotlib's renderer makes of a figure."""

from itertools import combinations

from matplotlib.figure import Figure
from matplotlib.text import Text


def texts_of(figure: Figure) -> dict[str, Text]:
    """Draw a figure; return its visible texts, each under its own name."""
    figure.draw_without_rendering()
    found = [x for x in figure.findobj(Text) if x.get_visible() and x.get_text().strip()]
    unused = _unused(figure)
    texts = [text for text in found if text not in unused]
    return {f'{i}: {text.get_text()}': text for i, text in enumerate(texts)}


def check_legible(figure: Figure) -> None:
    """Check that no texts of a figure overlap or run off the page, or are tiny."""
    texts = texts_of(figure)
    boxes = {name: text.get_window_extent() for name, text in texts.items()}
    page = figure.bbox
    off = [
        name
        for name, box in boxes.items()
        if box.x0 < page.x0 or box.y0 < page.y0 or box.x1 > page.x1 or box.y1 > page.y1
    ]
    assert off == []
    pairs = combinations(boxes.items(), 2)
    assert [(a, b) for (a, one), (b, other) in pairs if one.overlaps(other)] == []
    assert min(text.get_fontsize() for text in texts.values()) >= 7


def _unused(figure: Figure) -> list[Text]:
    """Return the labels of ticks beyond the ends of their axes, which are not drawn."""
    axes = [axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    return [
        tick.label1
        for axis in axes
        for tick in axis.get_major_ticks()
        if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
    ]
