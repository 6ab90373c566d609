"""The look of pages with trajectories: light and dark, as the reader's system is set."""

from functools import cache
from pathlib import Path

from pygments.formatters import HtmlFormatter

_SCHEMES = {
    "(prefers-color-scheme: light), print": "xcode",
    "screen and (prefers-color-scheme: dark)": "github-dark",
}
"""Pygments' styles, whose colours can be read on the pages' grounds (WCAG AA), by media query."""


@cache
def trajectory_style() -> str:
    """CSS for ``html_page``: an ``article`` a trajectory, its sections, and code (``pre.code``) with its classes."""
    colours = [
        f"@media {query} {{\n{HtmlFormatter(style=name).get_style_defs('.code')}\n}}"
        for query, name in _SCHEMES.items()
    ]
    style = Path(__file__).with_name("trajectories.css").read_text(encoding="utf-8")
    return "\n".join([style, *colours, ""])
