"""The page: one HTML file that asks no network for anything, with its rows as JSON and a script that shows them.

The page's policy (Content-Security-Policy) lets only its own script run, by digest; rows are written as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

import jinja2
from markupsafe import Markup
from pygments.formatters import HtmlFormatter

from pipelines.gallery.entries import Entry, entry_of_reject, entry_of_row
from pipelines.gallery.pictures import INLINE_BYTES, Album
from pipelines.images import ImageStore
from pipelines.records import Reject, Sample
from pipelines.shipped import count_rows, read_rows
from pipelines.stages import Progress
from pipelines.threads import in_threads

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Written:
    """A page that was written. ``folder`` holds its pictures where they are not in the page itself."""

    page: Path
    n_rows: int
    n_rejects: int
    folder: Path | None


@dataclass(frozen=True, slots=True)
class Taken:
    """Rejects to show, each with its sample where it has one, and the store with their images."""

    rejects: Sequence[tuple[Reject, Sample | None]]
    store: ImageStore


def write_gallery(
    page: Path,
    folders: Sequence[Path],
    *,
    title: str,
    taken: Taken | None = None,
    limit: int | None = None,
    inline_bytes: int = INLINE_BYTES,
    progress: Progress | None = None,
) -> Written:
    """Writes the datasets in ``folders`` (at most ``limit`` rows of each) and the rejects of ``taken`` as a page.

    Pictures of more than ``inline_bytes`` altogether go to ``<page>_files`` beside it. The page is replaced whole.
    """
    page.parent.mkdir(parents=True, exist_ok=True)
    album, contents = Album(page, inline_bytes=inline_bytes), []
    n_rows, rejects = count_rows(folders, limit=limit), taken.rejects if taken else ()
    for entry in _entries(folders, limit, taken):
        album.add(entry.pictures)
        contents.append(entry.content)
        if progress is not None:
            progress(len(contents), n_rows + len(rejects))
    part = page.with_name(f".{page.name}.{uuid4().hex}")
    part.write_text(_render(title, contents, album.addresses()), encoding="utf-8", errors="replace")
    os.replace(part, page)
    album.discard_others()
    return Written(page, n_rows, len(rejects), None if album.is_inline else album.folder)


def _entries(folders: Sequence[Path], limit: int | None, taken: Taken | None) -> Iterator[Entry]:
    n_threads = os.cpu_count() or 1
    shipped: Iterable[Entry] = in_threads(read_rows(folders, limit=limit), entry_of_row, n_threads=n_threads)
    if taken is None:
        return iter(shipped)
    store = taken.store
    rejected = in_threads(taken.rejects, lambda pair: entry_of_reject(*pair, store), n_threads=n_threads)
    return chain(shipped, rejected)


def _render(title: str, contents: Sequence[Any], pictures: dict[str, str]) -> str:
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    script = (_HERE / "gallery.js").read_text(encoding="utf-8")
    colours = HtmlFormatter(style="friendly").get_style_defs(".code")
    return environment.from_string((_HERE / "gallery.html.jinja").read_text(encoding="utf-8")).render(
        title=title,
        style=Markup((_HERE / "gallery.css").read_text(encoding="utf-8") + colours),
        script=Markup(script),
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        entries=_embedded(contents),
        pictures=_embedded(pictures),
    )


def _embedded(value: Any) -> Markup:
    """JSON that no HTML parser can mistake for markup, whatever its texts hold."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
    return Markup(text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e"))
