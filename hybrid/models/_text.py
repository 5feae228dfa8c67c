"""What models of text share: which text, and how it is cut into tokens."""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from ..feeds.text import Text, read
from ..settings import option


@dataclasses.dataclass(frozen=True)
class TextOptions:
    """Of every model that learns from a text."""

    text: str | None = option(
        None,
        "a UTF-8 text, one sentence or paragraph a line",
        group="data",
        needed=True,
        type=os.path.abspath,
        metavar="FILE",
    )
    case: str = option("lower", "whether upper case becomes lower case", group="data", choices=("lower", "keep"))


def read_text(path: str, options: Mapping[str, Any]) -> Text:
    """A file as the options cut it."""
    return read(path, **how_cut(options))


def how_cut(options: Mapping[str, Any]) -> dict[str, Any]:
    """How the options cut a text, as `Text` takes it; runs of before `case` and `eos` were options have neither."""
    return {"tokens": options["tokens"], "lower": options.get("case") != "keep", "eos": bool(options.get("eos"))}
