"""Shows our docstrings as web pages do: their lines of `name  what it is` become lists of definitions."""

import re
from typing import Any

import griffe

_DEFINED = re.compile(r"(\S.{0,60}?) {2,}(\S.*)")  # a name, two blanks or more, what it is
_CODE = re.compile(r"(`[^`]*`)")


class Docstrings(griffe.Extension):
    """Rewrites every docstring that is read into Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """A module, class, function or attribute was read."""
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)


def markdown(docstring: str) -> str:
    """The docstring in Markdown: paragraph by paragraph, definitions as lists and examples as code."""
    return "\n\n".join(map(_paragraph, re.split(r"\n\s*\n", docstring)))


def _paragraph(text: str) -> str:
    if text.startswith(">>>"):
        return f"```pycon\n{text}\n```"
    lines = text.split("\n")
    begins = [number for number, line in enumerate(lines) if _DEFINED.match(line)]
    if not begins or not all(line.startswith("  ") or _DEFINED.match(line) for line in lines[begins[0] :]):
        return _escaped(text)
    before, spans = lines[: begins[0]], zip(begins, [*begins[1:], len(lines)], strict=True)
    return "\n".join([_escaped("\n".join(before)), "", *(_definition(lines[first:last]) for first, last in spans)])


def _definition(lines: list[str]) -> str:
    """A name in a line of its own, then what it is, as Markdown's `def_list` wants it."""
    name, first = _DEFINED.match(lines[0]).groups()  # type: ignore[union-attr]
    told = " ".join([first, *(line.strip() for line in lines[1:])])
    return f"`{name}`\n:   {_escaped(told)}\n"


def _escaped(text: str) -> str:
    """Text in which `<unk>` is no HTML, and no bracket makes a link; code stays as it is."""
    parts = _CODE.split(text)
    return "".join(part if part.startswith("`") else re.sub(r"([<\[\]*])", r"\\\1", part) for part in parts)
