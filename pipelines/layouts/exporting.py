"""One export: every row rendered, verified and written, or set aside; the folder whole, or not there.

The output is made in a hidden folder beside it and takes its place by renaming. Its marker ``.darkroom.json`` names the
digest of the inputs and the size of every file: an export of the same rows into a folder that is whole does nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from pipelines.digest import digest, digest_bytes
from pipelines.layouts.base import KEYS, Facts, Layout, Rendered, Said
from pipelines.layouts.faults import LayoutFault, Unfit, Unrenderable
from pipelines.layouts.prompts.rows import prompt
from pipelines.layouts.readme import readme
from pipelines.layouts.shipped import Dataset
from pipelines.layouts.turns import Row, Turn, opening, refs, turns
from pipelines.layouts.verified import verify, verify_written
from pipelines.layouts.writing import Writer
from pipelines.messages import Message, as_json
from pipelines.records import ImageRef
from pipelines.stages import code_digest

MARKER = ".darkroom.json"  # a hidden file: `datasets` must not take it for data


@dataclass(frozen=True, slots=True)
class Exported:
    """What lies in the folder now. ``reused`` says that it was there already."""

    folder: Path
    n_rows: int
    n_images: int
    reasons: Mapping[str, int]
    """Rows that were set aside, by reason."""
    reused: bool


def export(dataset: Dataset, layout: Layout, out: Path) -> Exported:
    """Writes ``dataset`` in ``layout`` as the folder ``out``, which is replaced whole.

    Raises ``LayoutFault`` when ``out`` holds something that no export made, and for a layout of another kind of rows.
    """
    if layout.of != dataset.kind:
        raise LayoutFault(f"{layout.name} is a layout of {layout.of}; {dataset.name} holds {dataset.kind}")
    inputs = _inputs(dataset, layout)
    if (found := _found(out, inputs)) is not None:
        return found
    _require_ours(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    for orphan in out.parent.glob(f".{out.name}.*.part"):
        shutil.rmtree(orphan)  # left by a process that was killed while it wrote
    part = out.with_name(f".{out.name}.{uuid4().hex}.part")
    part.mkdir()
    try:
        _write(dataset, layout, part, inputs)
        _replace(out, part)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return _exported(out, json.loads((out / MARKER).read_text()), reused=False)


def records(dataset: Dataset, layout: Layout, writer: Writer) -> Iterator[Rendered]:
    """Every row that the layout can hold, verified; the others go to the writer's rejects."""
    prompts: set[str] = set()
    for index, row in enumerate(dataset.rows()):
        try:
            said, files = _said(row, layout, dataset.split, index)
            if layout.prompts_only:
                _require_new(said, prompts)
            rendered = layout.render(said)
            verify(layout, rendered.record)
        except Unrenderable as fault:
            writer.reject(str(row[KEYS[layout.of]]), fault)
            continue
        for path, data in files.items():
            writer.image(path, data)
        yield rendered


def _said(row: Row, layout: Layout, split: str, index: int) -> tuple[Said, dict[str, bytes]]:
    """The row's turns, and the image files that they need."""
    said = _turns(row, layout)
    pictures = _pictures(row)[: sum(len(turn.images) for turn in said)]
    if layout.media == "paths":
        files = {f"images/{name}": data for name, data in pictures}
        return Said(row, said, tuple(f"images/{name}" for name, _ in pictures), split, index), files
    media = tuple({"bytes": data, "path": name} for name, data in pictures)
    return Said(row, said, media, split, index), {}


def _turns(row: Row, layout: Layout) -> tuple[Turn, ...]:
    if layout.of == "prompts":
        return prompt(row)
    return opening(row) if layout.prompts_only else turns(row)


def _pictures(row: Row) -> list[tuple[str, bytes]]:
    """File name and bytes of every image, looked at: they are there, and what their digests say."""
    images, described = row["images"] or [], refs(row)
    if len(images) != len(described):
        raise Unrenderable(Unfit.IMAGES_DIFFER, f"the row holds {len(images)} images and describes {len(described)}")
    return [(_file_name(ref), _bytes(image, ref)) for image, ref in zip(images, described, strict=True)]


def _bytes(image: Mapping[str, Any] | None, ref: ImageRef) -> bytes:
    data: bytes | None = image["bytes"] if image else None
    if not data:
        raise Unrenderable(Unfit.MISSING_IMAGE, f"the bytes of image {ref.sha256} are not in the row")
    if digest_bytes(data) != ref.sha256:
        raise Unrenderable(Unfit.CHANGED_IMAGE, f"image {ref.sha256} has other bytes than its digest says")
    return data


def _file_name(ref: ImageRef) -> str:
    return f"{ref.sha256}.{ref.format.lower()}"


def _require_new(said: Said, prompts: set[str]) -> None:
    messages = as_json(tuple(Message(turn.role, turn.parts) for turn in said.turns))
    key = digest([messages, said.row["answer"]])
    if key in prompts:
        raise Unrenderable(Unfit.DUPLICATE_PROMPT, "an earlier row asks the same; a prompt is needed once")
    prompts.add(key)


def _write(dataset: Dataset, layout: Layout, folder: Path, inputs: str) -> None:
    with Writer(folder, layout, dataset.split) as writer:
        for rendered in records(dataset, layout, writer):
            writer.row(rendered)
    facts = Facts(
        dataset=dataset.name,
        split=dataset.split,
        files=dict(sorted(writer.n_rows.items())),
        n_rows=writer.n_rows.total(),
        n_images=writer.n_images,
        n_rejected=writer.reasons.total(),
        graders=dict(sorted(writer.graders.items())),
        protocol=dataset.protocol,
        mode=dataset.mode,
    )
    verify_written(folder, layout, facts)
    for name, text in layout.extra_files(facts).items():
        (folder / name).write_text(text)
    (folder / "README.md").write_text(readme(layout, facts, writer.reasons))
    marker = {
        "layout": layout.name,
        "inputs": inputs,
        "n_rows": facts.n_rows,
        "n_images": facts.n_images,
        "reasons": dict(writer.reasons),
        "files": _sizes(folder),
    }
    (folder / MARKER).write_text(json.dumps(marker, sort_keys=True))


def _inputs(dataset: Dataset, layout: Layout) -> str:
    files = []
    for path in dataset.files:
        with path.open("rb") as file:
            files.append(hashlib.file_digest(file, "sha256").hexdigest())
    asked = [dataset.kind, dataset.protocol, dataset.mode]
    return digest(["layout", layout.name, dataset.name, dataset.split, asked, files, code_digest()])


def _sizes(folder: Path) -> dict[str, int]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != MARKER)
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in found}


def _found(out: Path, inputs: str) -> Exported | None:
    """What lies there, if it is whole and was made from the same inputs."""
    marker = out / MARKER
    if not marker.is_file():
        return None
    facts = json.loads(marker.read_text())
    if facts["inputs"] != inputs or "layout" not in facts or facts["files"] != _sizes(out):
        return None
    return _exported(out, facts, reused=True)


def _exported(out: Path, facts: Mapping[str, Any], *, reused: bool) -> Exported:
    return Exported(out, facts["n_rows"], facts["n_images"], facts["reasons"], reused)


def _require_ours(out: Path) -> None:
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    marker = out / MARKER
    if not marker.is_file() or "layout" not in json.loads(marker.read_text()):
        raise LayoutFault(f"{out} holds something that no export made: name another folder, or empty it yourself")


def _replace(out: Path, part: Path) -> None:
    """Puts ``part`` where ``out`` is. Killed in between, nothing is there, never half of something."""
    if out.exists():
        old = out.with_name(f".{out.name}.{uuid4().hex}.part")
        os.rename(out, old)
        os.rename(part, out)
        shutil.rmtree(old)
    else:
        os.rename(part, out)
