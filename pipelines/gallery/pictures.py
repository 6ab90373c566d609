"""A page's pictures: small JPEGs, each once; in the page itself, or beside it when they are too many for one file."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from PIL import Image, ImageDraw

from pipelines.digest import digest_bytes
from pipelines.locate import locate

QUESTION_SIDE, OBSERVATION_SIDE = 900, 520
INLINE_BYTES = 24 << 20
"""What a page holds itself: a browser reads that at once, and a mail or an issue takes it."""
_OUTLINE = (255, 0, 90)


def encode(image: Image.Image, side: int) -> bytes:
    """The picture as a JPEG of at most ``side`` pixels on either side; transparency is laid on white."""
    small = _on_white(image)
    small.thumbnail((side, side), Image.Resampling.BICUBIC)
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=86)
    return buffer.getvalue()


def outlined(image: Image.Image, crops: Sequence[tuple[Image.Image, str]]) -> tuple[Image.Image, int]:
    """A copy in which the places are outlined that ``crops`` show, each given with its code; and how many there are.

    What shows the whole image is no crop of it: there is nothing to outline.
    """
    plain, width = _on_white(image), max(4, max(image.size) // 250)
    places = [found.box for crop, code in crops if (found := locate(_on_white(crop), plain, code)) is not None]
    parts = [place for place in places if place.area < plain.width * plain.height]
    marked = plain.copy()
    for place in parts:
        ImageDraw.Draw(marked).rectangle(place.grown(width), outline=_OUTLINE, width=width)
    return marked, len(parts)


def _on_white(image: Image.Image) -> Image.Image:
    if not image.has_transparency_data:
        return image.convert("RGB")
    white = Image.new("RGBA", image.size, (255, 255, 255, 255))
    return Image.alpha_composite(white, image.convert("RGBA")).convert("RGB")


class Album:
    """The pictures of the page at ``page``, by the names under which its rows know them."""

    def __init__(self, page: Path, *, inline_bytes: int = INLINE_BYTES) -> None:
        self.folder = page.with_name(f"{page.stem}_files")
        self._inline_bytes, self._n_bytes = inline_bytes, 0
        self._held: dict[str, bytes] = {}
        self._names: set[str] = set()

    @property
    def is_inline(self) -> bool:
        """Whether the page holds its pictures itself."""
        return self._n_bytes <= self._inline_bytes

    def add(self, pictures: Mapping[str, bytes]) -> None:
        """Takes pictures in; beyond the bound they go to the folder, and those held so far with them."""
        for name, data in pictures.items():
            if name not in self._names:
                self._names.add(name)
                self._held[name] = data
                self._n_bytes += len(data)
        if not self.is_inline:
            self.folder.mkdir(parents=True, exist_ok=True)
            for name, data in self._held.items():
                (self.folder / name).write_bytes(data)
            self._held.clear()

    def addresses(self) -> dict[str, str]:
        """Where the page finds each picture: a data URL, or a path from the page."""
        if not self.is_inline:
            return {name: f"{self.folder.name}/{name}" for name in sorted(self._names)}
        return {name: _data_url(data) for name, data in self._held.items()}

    def discard_others(self) -> None:
        """Removes what an earlier page left in the folder."""
        for path in self.folder.glob("*.jpg"):
            if self.is_inline or path.name not in self._names:
                path.unlink()
        if self.is_inline and self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()


def name_of(data: bytes) -> str:
    """The name of a picture: its content's."""
    return f"{digest_bytes(data)[:24]}.jpg"


def _data_url(data: bytes) -> str:
    return f"data:image/jpeg;base64,{base64.b64encode(data).decode()}"
