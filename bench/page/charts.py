"""Charts of sections as SVG: one look, in colours that colour-blind eyes tell apart."""

import copy
import json
from pathlib import Path
from typing import Any

from bench.section import Figure

# In order of use; each has a contrast of 3 or more to its background, as graphics must have by WCAG 2.
SERIES = ["#0072b2", "#d55e00", "#00835f", "#a8487f", "#8a6a00", "#5b5b5b", "#5a50c8", "#8b1a1a", "#c4008f", "#4a7a00"]
INK, FAINT, GRID, PAPER = "#1b1f24", "#5a626c", "#dfe3e8", "#ffffff"
SHAPES = [
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
    "triangle-left",
    "wedge",
    "arrow",
]
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"
WIDTH, HEIGHT = 640, 340


def write(figure: Figure, folder: Path) -> None:
    """NAME.svg."""
    import vl_convert

    spec = _spec(figure)
    if _single(spec):
        spec.setdefault("width", WIDTH)
    drawn = vl_convert.vegalite_to_svg(json.dumps(spec), vl_version=_version())
    (folder / f"{figure.name}.svg").write_text(drawn)


def _version() -> str:
    """Of Vega-Lite, as altair writes it: v6.4.1 is 6.4."""
    import altair

    return ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def _single(spec: dict[str, Any]) -> bool:
    """Whether a chart is one picture, no grid of them."""
    return not {"facet", "concat", "hconcat", "vconcat", "repeat"} & spec.keys() and not (
        {"row", "column", "facet"} & spec.get("encoding", {}).keys()
    )


def _spec(figure: Figure) -> dict[str, Any]:
    """The section's chart in our look; what it says itself stays."""
    import altair

    with altair.data_transformers.enable("default", max_rows=None):
        spec: dict[str, Any] = copy.deepcopy(figure.chart.to_dict())
    spec["config"] = _merged(_look(), spec.get("config", {}))
    spec["description"] = figure.told
    if _single(spec):
        spec.setdefault("height", HEIGHT)
    return spec


def _merged(look: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Altair's own theme has a size of views, which is not the section's wish."""
    own = {name: value for name, value in own.items() if name != "view"}
    return look | {
        name: look[name] | value if isinstance(look.get(name), dict) else value for name, value in own.items()
    }


def _look() -> dict[str, Any]:
    words = {"labelColor": FAINT, "titleColor": INK, "labelFontSize": 12, "titleFontSize": 12}
    return {
        "background": PAPER,
        "font": FONT,
        "view": {"stroke": None, "continuousWidth": 300, "continuousHeight": 240},
        "axis": words | {"titleFontWeight": 500, "titlePadding": 8, "gridColor": GRID, "domainColor": FAINT}
        | {"tickColor": FAINT, "labelOverlap": True, "labelSeparation": 8, "labelLimit": 260},
        "legend": words | {"orient": "bottom", "title": None, "labelLimit": 320, "symbolOpacity": 1}
        | {"columns": {"expr": "max(1, floor(width / 190))"}}
        | {"symbolBaseFillColor": FAINT, "symbolBaseStrokeColor": FAINT, "symbolStrokeWidth": 2}
        | {"rowPadding": 4, "columnPadding": 16},
        "axisY": {"tickCount": 6},
        "header": words | {"titleFontWeight": 500},
        "title": {"color": INK, "fontSize": 13, "fontWeight": 600, "anchor": "start"},
        "text": {"color": INK, "fontSize": 11},
        "style": {"on-mark": {"color": PAPER, "fontSize": 11}},
        "rule": {"color": FAINT},
        "mark": {"color": SERIES[0]},
        "line": {"strokeWidth": 2},
        "point": {"size": 55, "filled": True, "opacity": 1},
        "errorband": {"opacity": 0.2},
        "area": {"opacity": 0.2},
        "range": {"category": SERIES, "symbol": SHAPES},
    }  # fmt: skip
