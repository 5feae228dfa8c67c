"""One look of all charts, in colours that are seen on their background."""

import pytest

from bench.page import charts
from bench.section import Figure

alt = pytest.importorskip("altair")
pytest.importorskip("vl_convert")


def figure(chart=None):
    points = alt.Data(values=[{"x": 1, "y": 2, "who": "a"}, {"x": 2, "y": 3, "who": "b"}])
    made = alt.Chart(points).mark_point().encode(x="x:Q", y="y:Q", color="who:N")
    return Figure("some", "Some points", chart or made, "It rises.", "table")


def test_what_a_section_says_of_a_chart_stays():
    spec = charts._spec(figure(figure().chart.properties(height=99).configure_axis(labelFontSize=20)))
    assert spec["height"] == 99 and spec["description"] == "It rises."
    assert spec["config"]["axis"]["labelFontSize"] == 20 and spec["config"]["axis"]["gridColor"] == charts.GRID


def test_it_is_drawn_in_our_colours(tmp_path):
    charts.write(figure(), tmp_path)
    assert charts.SERIES[0] in (tmp_path / "some.svg").read_text()
