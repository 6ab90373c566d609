"""The gallery: trajectories and rejects as one page with search and filters, every image, thought and piece of code."""

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from uuid import uuid4

import numpy as np
from markupsafe import Markup
from pygments.formatters import HtmlFormatter

from darkroom.pipelines.generation.stage import SAMPLES, STAGES
from darkroom.pipelines.inspection.gallery.entries import Entry, RejectedRows, entry_of_reject, entry_of_row
from darkroom.pipelines.inspection.pages import data_url, embedded_json, html_page
from darkroom.pipelines.publishing.dataset_reader import ASSETS, count_rows, map_in_threads, read_rows
from darkroom.pipelines.publishing.rendering import render
from darkroom.pipelines.records import Reject, Sample
from darkroom.pipelines.records.digest import key64
from darkroom.pipelines.storage.atomic_write import whole_file
from darkroom.pipelines.storage.row_files import KeyedSpill, RowStream
from darkroom.pipelines.storage.stage_runs import Progress
from darkroom.pipelines.storage.store_paths import StorePath
from darkroom.pipelines.storage.tables import TableKey, Tables
from darkroom.pipelines.storage.workspace import Workspace

FILTERS = {"kind": "Show", "family": "Family", "category": "Category", "check": "Check", "reason": "Reject reason"}
"""Labels of the filters by their ids, which ``gallery.js`` knows."""
INLINE_BYTES = 24 << 20
"""Maximum bytes of images within a page: a browser reads that at once, and a mail or an issue takes it."""
_ENTRIES = f"entries {uuid4().hex}"
_HERE = Path(__file__).parent
_SCHEMES = {"(prefers-color-scheme: light), print": "xcode", "screen and (prefers-color-scheme: dark)": "github-dark"}
"""Styles of Pygments that can be read on the page's backgrounds (WCAG AA), by media query."""


@dataclass(frozen=True, slots=True)
class GalleryPage:
    """A written page. ``folder`` holds its images if they are not in the page itself."""

    page: Path
    n_rows: int
    n_rejects: int
    n_not_applicable: int
    folder: Path | None


def read_rejects(workspace: Workspace, families: Sequence[str] | None = None) -> RejectedRows:
    """Read the rejects of ``families`` (None: all, and those of intake) by stage, over all partitions."""
    tables, keys = workspace.tables, list(_reject_keys(workspace.tables, families))
    state = [[str(key), tables.rejects_path(key).stat().st_mtime] for key in keys]

    def read() -> Iterator[tuple[Reject, Sample | None]]:
        samples = _samples_of(tables, (reject for key in keys for reject in tables.stream_rejects(key)))
        for key in keys:
            yield from ((reject, samples.get(key64(reject.sample_id))) for reject in tables.stream_rejects(key))

    return RejectedRows(RowStream(sum(map(tables.n_rejects, keys)), read), workspace.images, state)


def _samples_of(tables: Tables, rejects: Iterable[Reject]) -> KeyedSpill:
    """Samples of rejects, on disk; if several partitions hold one, the last partition's."""
    samples = KeyedSpill(tables.scratch)
    sample_keys = {key64(reject.sample_id) for reject in rejects if reject.sample_id}
    for key in tables.keys(SAMPLES) if sample_keys else ():
        ids = (sample_id for (sample_id,) in tables.columns(key, "sample_id"))
        mask = np.fromiter((key64(sample_id) in sample_keys for sample_id in ids), np.bool_)
        for sample in tables.stream(key, Sample, mask=mask) if mask.any() else ():
            samples.add(key64(sample.sample_id), sample)
    return samples


def write_gallery(
    page: Path,
    folders: Sequence[StorePath],
    *,
    title: str,
    rejected: RejectedRows | None = None,
    limit: int | None = None,
    inline_bytes: int = INLINE_BYTES,
    progress: Progress | None = None,
) -> GalleryPage:
    """Write the datasets in ``folders`` (at most ``limit`` rows of each) and the rejects as a page."""
    n_rows, n_rejects = count_rows(folders, limit=limit), len(rejected.rows) if rejected else 0
    kinds, streams = Counter[str](), [map_in_threads(read_rows(folders, limit=limit), entry_of_row)]
    if rejected is not None:
        streams.append(map_in_threads(rejected.rows, lambda pair: entry_of_reject(*pair, rejected.store)))

    def entries() -> Iterator[Entry]:
        for number, entry in enumerate(chain(*streams), 1):
            kinds.update(entry.filters["kind"])
            yield entry
            if progress is not None:
                progress(number, n_rows + n_rejects)

    images = write_entries(page, entries(), title=title, inline_bytes=inline_bytes)
    return GalleryPage(page, n_rows, n_rejects - kinds["not_applicable"], kinds["not_applicable"], images)


def _reject_keys(tables: Tables, families: Sequence[str] | None) -> Iterator[TableKey]:
    """From intake, then what came furthest first: most of the rows that are not applicable come last."""
    if families is None:
        yield from tables.keys(SAMPLES)
        families = tables.families()
    yield from (key for key in tables.keys((ASSETS["trajectories"],)) if key.partition in families)
    for stage in reversed(STAGES):
        for family in families:
            yield from tables.keys((family, stage))


def gallery_page(title: str, elements: Sequence[Markup], script: str, *, filters: Mapping[str, str] = FILTERS) -> str:
    """The page with its embedded data; ``script``: the file that finds rows and shows them."""
    is_served = script == "served.js"
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
    """Write entries as a page, which is replaced whole; they wait on disk until it is written. ``addresses``: images
    that lie beside the page already. Other images of more than ``inline_bytes`` altogether go to ``<page>_files``,
    which is returned then."""
    page.parent.mkdir(parents=True, exist_ok=True)
    images = _PageImages(page, inline_bytes)
    with tempfile.TemporaryFile(dir=page.parent) as contents:
        for entry in entries:
            images.add(entry.images)
            # no image of a template is loaded before the script shows it
            opening = Markup('<template class="entry" data-link="{}" data-filters="{}">')
            head = opening.format(entry.content["link"], json.dumps(entry.filters))
            contents.write(f"{head}{entry.html()}</template>\n".encode(errors="replace"))
        contents.seek(0)
        text = gallery_page(title, [Markup(_ENTRIES)], "gallery.js", filters=filters)
        with whole_file(page) as part, part.open("wb") as file:
            before, after = text.encode(errors="replace").split(_ENTRIES.encode())
            file.write(before)
            shutil.copyfileobj(contents, file)
            for part_of_element in _images_element(chain((addresses or {}).items(), images.addresses())):
                file.write(part_of_element.encode(errors="replace"))
            file.write(after)
    images.discard_others()
    return None if images.is_inline else images.folder


def _images_element(addresses: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The element ``images``, an address at a time: they are most of a page, which is never in memory whole."""
    opening, closing = embedded_json("images", {}).split("{}")
    yield f"{opening}{{"
    for number, pair in enumerate(addresses):
        yield "," * (number > 0) + embedded_json("images", dict([pair]))[len(opening) + 1 : -len(closing) - 1]
    yield f"}}{closing}"


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

    def addresses(self) -> Iterator[tuple[str, str]]:
        """A data URL for each image, or its path from the page."""
        if self.is_inline:
            return ((name, data_url(data, "image/jpeg")) for name, data in self._inline.items())
        return ((name, f"{self.folder.name}/{name}") for name in sorted(self._names))

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
