"""The report as one page: its Markdown, with the style and the charts in it."""

import html
import re
from pathlib import Path

STYLE = Path(__file__).with_name("page.css")


def page(title: str, text: str, folder: Path) -> str:
    """The Markdown `text` as HTML; pictures are read from `folder`."""
    from markdown_it import MarkdownIt

    body = MarkdownIt("js-default").render(text)  # which shows HTML of a section as text
    body = re.sub(r'<img src="([^"]*\.svg)" alt="([^"]*)"\s*/?>', lambda found: _drawn(folder, *found.groups()), body)
    head = (
        f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{html.escape(title)}</title>'
    )
    head += f"<style>\n{STYLE.read_text()}</style>"
    return f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{body}</body>\n</html>\n'


def _drawn(folder: Path, path: str, alt: str) -> str:
    """A picture within the page, with its text for those who cannot see it."""
    return (folder / path).read_text().replace("<svg ", f'<svg role="img" aria-label="{alt}" ', 1)
