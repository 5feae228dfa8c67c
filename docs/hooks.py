"""The site's hooks: what pages link to in the repository, and a code host shows, is part of the site.

`::: hybrid.NAME` stands for the module that NAME is defined in, wherever that is today.
"""

import re
import sys
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
import hybrid  # noqa: E402  # from the folder, if it is not installed

PAGES = {"notes.md": "bench/NOTES.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
EXAMPLE = re.compile(r"^\[(examples/\w+\.py)\]\(\.\./\1\)$", re.MULTILINE)  # the site shows the program itself here


def on_files(files, config):
    """Files of the repository that are pages, too."""
    for page, path in PAGES.items():
        content = re.sub(r"\]\((?:\.\./)?docs/", "](", (ROOT / path).read_text())  # links to pages
        files.append(File.generated(config, page, content=content))
    return files


def on_page_markdown(markdown: str, **_) -> str:
    """The page, with what it links to in place, and the public names as mkdocstrings finds them."""
    markdown = EXAMPLE.sub(lambda found: program(found[1]), markdown)
    for page, path in PAGES.items():
        markdown = re.sub(rf"\]\(((?:\.\./)*)\.\./{re.escape(path)}", rf"](\1{page}", markdown)
    return re.sub(r"^::: hybrid\.(\w+)$", lambda found: f"::: {home(found[1])}", markdown, flags=re.MULTILINE)


def program(path: str) -> str:
    """A program as a block that opens."""
    lines = "".join(f"    {line}" if line.strip() else line for line in (ROOT / path).read_text().splitlines(True))
    return f'??? example "{path}"\n    ``` {{ .python }}\n{lines}    ```'


def home(name: str) -> str:
    """Where a name of `hybrid` is defined: "hybrid.engine.Engine"; the name of a module itself."""
    value = getattr(hybrid, name)
    return f"{value.__module__}.{name}" if hasattr(value, "__module__") else value.__name__
