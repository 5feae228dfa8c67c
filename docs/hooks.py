"""The site's hook: `::: hybrid.NAME` in a page stands for the module that NAME is defined in, wherever that is today."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import hybrid


def on_page_markdown(markdown: str, **_) -> str:
    """The page, with the public names as mkdocstrings finds them."""
    return re.sub(r"^::: hybrid\.(\w+)$", lambda found: f"::: {home(found[1])}", markdown, flags=re.MULTILINE)


def home(name: str) -> str:
    """Where a name of `hybrid` is defined: "hybrid.engine.Engine"; the name of a module itself."""
    value = getattr(hybrid, name)
    return f"{value.__module__}.{name}" if hasattr(value, "__module__") else value.__name__
