"""The HTML around a gallery's rows: the bar with search and filters, the styles, the scripts."""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from darkroom.pipelines.inspection.html_page import html_page
from darkroom.pipelines.inspection.trajectory_style import trajectory_style
from darkroom.pipelines.publishing.templates import render

_HERE = Path(__file__).parent


def gallery_page(title: str, elements: Sequence[Markup], script: str, *, is_served: bool = False) -> str:
    """The page with its embedded data; ``script``: the file that finds rows and draws them with ``article.js``."""
    body = render("gallery.html.jinja", _HERE, title=title, elements=elements, is_served=is_served)
    return html_page(
        Markup(body),
        title=f"{title}: gallery",
        style=trajectory_style() + _text("gallery.css"),
        script=_text("article.js") + _text(script),
        is_served=is_served,
    )


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
