"""The gallery's page: a bar with search and filters, the articles, images in the page or beside it, scripts."""

import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from uuid import uuid4

from markupsafe import Markup
from pygments.formatters import HtmlFormatter

from darkroom.pipelines.inspection.gallery.entries import Entry
from darkroom.pipelines.inspection.pages import data_url, embedded_json, html_page
from darkroom.pipelines.publishing.rendering import render
from darkroom.pipelines.storage.atomic_write import whole_file

FILTERS = {"kind": "Show", "family": "Family", "category": "Category", "check": "Check", "reason": "Reject reason"}
"""Labels of the filters by their ids, which ``gallery.js`` knows."""
INLINE_BYTES = 24 << 20
"""Maximum bytes of images within a page: a browser reads that at once, and a mail or an issue takes it."""
_ENTRIES = f"entries {uuid4().hex}"
_HERE = Path(__file__).parent
_SCHEMES = {"(prefers-color-scheme: light), print": "xcode", "screen and (prefers-color-scheme: dark)": "github-dark"}
"""Styles of Pygments that can be read on the page's backgrounds (WCAG AA), by media query."""


def gallery_page(
    title: str,
    elements: Sequence[Markup],
    script: str,
    *,
    filters: Mapping[str, str] = FILTERS,
    is_served: bool = False,
) -> str:
    """The page with its embedded data; ``script``: the file that finds rows and shows them."""
    facts = {"title": title, "elements": elements, "filters": filters, "is_served": is_served}
    return html_page(
        Markup(render("gallery.html.jinja", _HERE, **facts)),
        title=f"{title}: gallery",
        style=_style(),
        script=_text("shared.js") + _text(script),
        is_served=is_served,
    )


def write_entries(
    page: Path,
    entries: Iterable[Entry],
    *,
    title: str,
    filters: Mapping[str, str] = FILTERS,
    addresses: Mapping[str, str] | None = None,
    inline_bytes: int = INLINE_BYTES,
) -> Path | None:
    """Write entries as a page, which is replaced whole; they wait on disk until it is written.

    ``addresses``: images that lie beside the page already. Other images of more than ``inline_bytes`` altogether go to
    ``<page>_files``, which is returned then.
    """
    page.parent.mkdir(parents=True, exist_ok=True)
    images = _PageImages(page, inline_bytes)
    with tempfile.TemporaryFile(dir=page.parent) as contents:
        for entry in entries:
            images.add(entry.images)
            contents.write(_inert(entry).encode(errors="replace"))
        contents.seek(0)
        data = (Markup(_ENTRIES), embedded_json("images", {**(addresses or {}), **images.addresses()}))
        text = gallery_page(title, data, "gallery.js", filters=filters)
        with whole_file(page) as part, part.open("wb") as file:
            before, after = text.encode(errors="replace").split(_ENTRIES.encode())
            file.write(before)
            shutil.copyfileobj(contents, file)
            file.write(after)
    images.discard_others()
    return None if images.is_inline else images.folder


def _inert(entry: Entry) -> str:
    """The article as a template of the page: no image is loaded before the script shows it."""
    head = Markup('<template class="entry" data-link="{}" data-filters="{}">').format(
        entry.content["link"], json.dumps(entry.filters)
    )
    return f"{head}{entry.html()}</template>\n"


class _PageImages:
    """Images of a page by name, each once: in the page itself, or beside it when they are too many for one file."""

    def __init__(self, page: Path, inline_bytes: int) -> None:
        self.folder = page.with_name(f"{page.stem}_files")
        self._inline_bytes, self._n_bytes = inline_bytes, 0
        self._inline: dict[str, bytes] = {}
        self._names: set[str] = set()

    @property
    def is_inline(self) -> bool:
        return self._n_bytes <= self._inline_bytes

    def add(self, images: Mapping[str, bytes]) -> None:
        """Add images; beyond the limit, they and the earlier ones go to the folder."""
        for name, data in images.items():
            if name not in self._names:
                self._names.add(name)
                self._inline[name] = data
                self._n_bytes += len(data)
        if not self.is_inline:
            self.folder.mkdir(parents=True, exist_ok=True)
            for name, data in self._inline.items():
                (self.folder / name).write_bytes(data)
            self._inline.clear()

    def addresses(self) -> dict[str, str]:
        """A data URL for each image, or its path from the page."""
        if not self.is_inline:
            return {name: f"{self.folder.name}/{name}" for name in sorted(self._names)}
        return {name: data_url(data, "image/jpeg") for name, data in self._inline.items()}

    def discard_others(self) -> None:
        """Remove the files of an earlier page from the folder."""
        for path in self.folder.glob("*.jpg"):
            if self.is_inline or path.name not in self._names:
                path.unlink()
        if self.is_inline and self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()


@cache
def _style() -> str:
    """CSS of the articles, light and dark, with the classes of code (``pre.code``)."""
    colours = [
        f"@media {query} {{\n{HtmlFormatter(style=name).get_style_defs('.code')}\n}}"
        for query, name in _SCHEMES.items()
    ]
    return "\n".join([_text("gallery.css"), *colours, ""])


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
