"""Writes ``docs/llms.txt``, the site's table of contents for language models (llmstxt.org), from the navigation.

python -m scripts.llms_page            # after a change of the navigation or of a heading; a test compares them
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "llms.txt"
_GENERAL = "General"


def page() -> str:
    """The file's text: a list of pages for each section, with the heading of each page."""
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    lines = [f"# {site['site_name']}", "", f"> {site['site_description']}"]
    section = ""
    for below, title, name in _entries(site["nav"]):
        if below != section:
            section = below
            lines += ["", f"## {section}", ""]
        heading = _heading(name)
        link = f"- [{title}]({Path(name).with_suffix('.html')})"
        lines.append(f"{link}: {heading}" if heading != title else link)
    return "\n".join([*lines, ""])


def _entries(navigation: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """Section, title and file of each page; pages without a section first."""
    items = [item for entry in navigation for item in entry.items()]
    yield from ((_GENERAL, title, name) for title, name in items if isinstance(name, str))
    for section, pages in items:
        if not isinstance(pages, str):
            yield from ((section, title, name) for entry in pages for title, name in entry.items())


def _heading(name: str) -> str:
    """A page's title as the page has it."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
