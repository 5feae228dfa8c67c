"""One look of all charts: colours that are seen on their background, names of the style sheet on the page, files beside it."""

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


@pytest.mark.parametrize("dark", [False, True])
def test_what_is_drawn_is_seen(dark):
    inks = charts.inks(dark)
    series = [colour for name, colour in inks.items() if name.startswith("series")]
    assert len(set(series)) == len(charts.LIGHT) == len(charts.DARK) == len(charts.SHAPES)
    assert min(contrast(colour, inks["paper"]) for colour in series) >= SEEN
    assert min(contrast(inks[name], inks["paper"]) for name in ("ink", "faint")) >= 4.5


def test_the_first_colours_are_told_apart_by_their_brightness_or_hue():
    """Of those that a figure has most often no two are close, neither as they are nor without red and green."""
    for colours in (charts.LIGHT, charts.DARK):
        for one, other in itertools.combinations(colours[:4], 2):
            apart = [abs(int(one[at : at + 2], 16) - int(other[at : at + 2], 16)) for at in (1, 3, 5)]
            assert max(apart[2], 255 * abs(luminance(one) - luminance(other))) > 15


def test_on_the_page_colours_are_those_of_the_style_sheet_and_the_chart_is_as_wide_as_it():
    spec = charts.on_page(figure())
    assert spec["width"] == "container" and spec["description"] == "It rises."
    assert (
        spec["config"]["range"]["category"][0] == "var(--series-1)" and spec["config"]["background"] == "var(--paper)"
    )


def test_a_grid_of_charts_keeps_its_own_width():
    assert "width" not in charts.on_page(figure(figure().chart.facet("who:N")))


def test_what_a_section_says_of_a_chart_stays():
    spec = charts.on_page(figure(figure().chart.properties(height=99).configure_axis(labelFontSize=20)))
    assert spec["height"] == 99 and spec["config"]["axis"]["labelFontSize"] == 20
    assert spec["config"]["axis"]["gridColor"] == "var(--grid)"


def test_files_are_light_and_need_no_style_sheet(tmp_path):
    charts.write(figure(), tmp_path)
    svg = (tmp_path / "some.svg").read_text()
    assert "var(" not in svg and charts.LIGHT[0] in svg
    assert (tmp_path / "some.png").read_bytes().startswith(b"\x89PNG")
