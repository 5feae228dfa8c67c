"""One look of all charts, in colours that are seen on their background."""

import itertools

import pytest

from bench.page import charts
from bench.section import Figure

alt = pytest.importorskip("altair")
pytest.importorskip("vl_convert")

SEEN = 3  # the least contrast of what is drawn; of words it is 4.5 (WCAG 2)


def figure(chart=None):
    points = alt.Data(values=[{"x": 1, "y": 2, "who": "a"}, {"x": 2, "y": 3, "who": "b"}])
    made = alt.Chart(points).mark_point().encode(x="x:Q", y="y:Q", color="who:N")
    return Figure("some", "Some points", chart or made, "It rises.", "table")


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_what_is_drawn_is_seen():
    assert len(set(charts.SERIES)) == len(charts.SERIES) == len(charts.SHAPES)
    assert min(contrast(colour, charts.PAPER) for colour in charts.SERIES) >= SEEN
    assert min(contrast(colour, charts.PAPER) for colour in (charts.INK, charts.FAINT)) >= 4.5


def test_the_first_colours_are_told_apart_by_their_brightness_or_hue():
    """Of those that a figure has most often no two are close, neither as they are nor without red and green."""
    for one, other in itertools.combinations(charts.SERIES[:4], 2):
        apart = [abs(int(one[at : at + 2], 16) - int(other[at : at + 2], 16)) for at in (1, 3, 5)]
        assert max(apart[2], 255 * abs(luminance(one) - luminance(other))) > 15


def test_what_a_section_says_of_a_chart_stays():
    spec = charts._spec(figure(figure().chart.properties(height=99).configure_axis(labelFontSize=20)))
    assert spec["height"] == 99 and spec["description"] == "It rises."
    assert spec["config"]["axis"]["labelFontSize"] == 20 and spec["config"]["axis"]["gridColor"] == charts.GRID


def test_it_is_drawn_in_our_colours(tmp_path):
    charts.write(figure(), tmp_path)
    assert charts.SERIES[0] in (tmp_path / "some.svg").read_text()
