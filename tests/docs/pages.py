"""The pages that a user reads, and the blocks of code in them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "results").glob("*.md"))]


class Block(NamedTuple):
    """A fenced block: its language, and its lines."""

    language: str
    code: str


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [Block(*found) for found in re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)]


def commands(code: str) -> Iterator[str]:
    """The commands of a block of shell lines: without comments, lines that end in a backslash joined, `&&` taken apart."""
    for line in code.replace("\\\n", " ").splitlines():
        for command in re.split(r"\s&&\s", re.sub(r"(^|\s)#.*", "", line)):
            if command.strip():
                yield command.strip()


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
