"""The report as one page that needs no other file: style, library, charts and tables are in it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.page import charts, facts, tables
from bench.page.part import Part, laid_out

HERE = Path(__file__).parent


def page(known: facts.Facts, parts: Sequence[Part]) -> str:
    """All of it."""
    from jinja2 import Environment, StrictUndefined
    from markdown_it import MarkdownIt
    from markupsafe import Markup

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((HERE / "page.html").read_text())
    written = MarkdownIt("js-default")  # which shows HTML of a section as text
    return template.render(
        facts=known,
        parts=parts,
        citation=facts.citation(known),
        laid_out=laid_out,
        markdown=lambda text: Markup(written.render(text)),
        inline=lambda text: Markup(written.renderInline(text)),
        shown=tables.shown,
        is_number=tables.is_number,
        spec=lambda figure: Markup(_within_script(json.dumps(charts.on_page(figure)))),
        style=Markup(_variables() + (HERE / "page.css").read_text()),
        library=Markup(charts.script().replace("</script", "<\\/script")),
    )


def _within_script(text: str) -> str:
    """JSON that no parser of HTML takes for an end of the script, or a comment."""
    return text.replace("<", "\\u003c")


def _variables() -> str:
    """The colours of the style sheet, light and dark."""

    def declared(found: dict[str, Any]) -> str:
        return "".join(f"--{name}: {value}; " for name, value in found.items())

    light, dark = declared(charts.inks(False)), declared(charts.inks(True))
    return f":root {{ {light}}}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark}}} }}\n"
