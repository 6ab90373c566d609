"""Trajectories in Dagster's Markdown: tables and single lines, with thumbnails inside the text.

Dagster's UI serves no files, so images are data URLs; Markdown of ``SHOWN_INLINE`` characters and more is shown behind
a link (1.13, ``MarkdownMetadataEntry``).
"""

import io
from collections.abc import Iterable, Sequence

from PIL import Image

from darkroom.pipelines.inspection.html_page import data_url

SHOWN_INLINE = 1000
_SIDES = (160, 128, 96, 72, 56, 40)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells as they are, one row a line."""
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
    buffer = io.BytesIO()
    image.save(buffer, format, quality=quality)
    return f"![]({data_url(buffer.getvalue(), f'image/{format.lower()}')})"


def thumbnail(image: Image.Image, side: int, *, quality: int = 60) -> str:
    small = image.convert("RGB")
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    return embedded(small, "WEBP", quality=quality)


def inline_example(image: Image.Image | None, caption: str) -> str:
    """An image and a caption, small enough to be shown without a link; without the image where no size is."""
    for side in _SIDES if image is not None else ():
        line = f"{thumbnail(image, side, quality=35)}\n\n{caption}"
        if len(line) < SHOWN_INLINE:
            return line
    return caption[: SHOWN_INLINE - 1]
