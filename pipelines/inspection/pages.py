"""HTML pages that load nothing (styles, one script, images and data are in the page itself), and Dagster's Markdown. A
page's Content-Security-Policy runs only its own script, by digest. Text of rows goes through ``markupsafe`` or
``embedded_json``, never into markup. Dagster's UI serves no files either: images in Markdown are data URLs."""

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup
from PIL import Image

from darkroom.pipelines.publishing.rendering import render
from darkroom.pipelines.storage.media_validation import encode

_HERE = Path(__file__).parent


def html_page(
    body: Markup, *, title: str, style: str, script: str = "", has_images: bool = True, is_served: bool = False
) -> str:
    """The page; ``style`` is added to ``page.css``, which has the colours, light and dark. ``has_images``: in data URLs
    or in files beside it; ``is_served``: its script asks its own server."""
    images = " img-src 'self' file: data:;" if has_images else ""
    policy = f"default-src 'none';{images} style-src 'unsafe-inline'"
    if is_served:
        policy += "; connect-src 'self'"
    if script:
        policy += f"; script-src 'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
    shared = (_HERE / "page.css").read_text(encoding="utf-8")
    parts = {"style": Markup(shared + style), "body": body, "script": Markup(script)}
    return render("page.html.jinja", _HERE, policy=Markup(policy), title=title, **parts) + "\n"


def embedded_json(name: str, value: Any) -> Markup:
    """``value`` as a JSON element with the id ``name``; no HTML parser can mistake its texts for markup."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
    text = text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")
    return Markup('<script type="application/json" id="{}">{}</script>').format(name, Markup(text))


def data_url(data: bytes, media_type: str = "image/png") -> str:
    """A file as an address that needs no file."""
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


SHOWN_INLINE = 1000
"""Characters of Markdown from which Dagster's UI shows a link instead (1.13, ``MarkdownMetadataEntry``)."""
_SIDES = (160, 128, 96, 72, 56, 40)


_CELL = 32_767
"""Characters in a cell of a spreadsheet; a program that reads more spreads the rest over other cells."""
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")
"""First characters of cells that a spreadsheet computes (OWASP, CSV injection); the last four in East Asian locales."""


def spreadsheet_cell(value: Any) -> str:
    """Escape a cell so that a spreadsheet shows it and does not compute it; no text is trusted."""
    if not isinstance(value, str):
        return "" if value is None else str(value)
    text = value[:_CELL].replace("\0", "")
    return f"'{text}"[:_CELL] if text.lstrip(" ").startswith(_FORMULA) else text


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


def cell(text: str, limit: int | None = None, *, code: bool = False) -> str:
    """Text of one line for a table, cut to ``limit`` characters; no markup in it takes effect."""
    line = " ".join(text.split())
    if limit is not None and len(line) > limit:
        line = f"{line[: limit - 1]}…"
    line = line.replace("|", "\\|")
    return f"`{line.replace('`', chr(39))}`" if code and line else line.replace("<", "&lt;")


def embedded(image: Image.Image, format: str, *, quality: int) -> str:
    """The image as a Markdown image that needs no file."""
    return f"![]({data_url(encode(image, format, quality=quality), f'image/{format.lower()}')})"


def thumbnail(image: Image.Image, side: int, *, quality: int = 60) -> str:
    small = image.convert("RGB")
    small.thumbnail((side, side), Image.Resampling.LANCZOS, reducing_gap=3.0)
    return embedded(small, "WEBP", quality=quality)


def inline_example(image: Image.Image | None, caption: str) -> str:
    """An image and a caption, small enough to be shown without a link; without the image where no size is."""
    if image is None:
        return caption[: SHOWN_INLINE - 1]
    small = image.convert("RGB").reduce(max(1, max(image.size) // (4 * _SIDES[0])))
    for side in _SIDES:
        line = f"{thumbnail(small, side, quality=35)}\n\n{caption}"
        if len(line) < SHOWN_INLINE:
            return line
    return caption[: SHOWN_INLINE - 1]
