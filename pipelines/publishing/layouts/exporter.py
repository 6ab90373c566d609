"""One export: every row rendered, verified and written, or rejected; the folder complete, or absent. The output is made
in a hidden folder beside it and takes its place by renaming. Its marker ``.darkroom.json`` holds the digest of the
inputs and the size of every file: an export of the same rows into a complete folder does nothing."""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from darkroom.adapters import FOLDER
from darkroom.pipelines.models.messages import Message, as_json
from darkroom.pipelines.publishing.dataset_reader import KEYS, marker_facts
from darkroom.pipelines.publishing.layouts.base import ExportFacts, ExportRow, Layout, grader_of, prompt
from darkroom.pipelines.publishing.layouts.export_source import ExportSource, LayoutError
from darkroom.pipelines.publishing.layouts.record_writer import RecordWriter, verify, verify_written
from darkroom.pipelines.publishing.layouts.turns import Row, Unfit, Unrenderable, opening, refs, turns
from darkroom.pipelines.publishing.manifest import write_manifest
from darkroom.pipelines.publishing.rendering import render
from darkroom.pipelines.records.digest import digest, digest_bytes
from darkroom.pipelines.storage.atomic_write import MARKER, replace_folder
from darkroom.pipelines.storage.row_files import file_digest
from darkroom.pipelines.storage.stage_runs import code_digest

REWARD = FOLDER / "reward.py"
_README = "layouts/readmes/readme.md.jinja"


@dataclass(frozen=True, slots=True)
class Exported:
    """A complete folder; ``reused``: from an earlier export of the same rows."""

    folder: Path
    n_rows: int
    n_images: int
    reasons: Mapping[str, int]
    """Rejected rows, by reason."""
    reused: bool
    manifest: str = ""
    """Its digest."""


def export(dataset: ExportSource, layout: Layout, out: Path) -> Exported:
    """Writes ``dataset`` in ``layout`` as the folder ``out``, which is replaced whole. Raises ``LayoutError`` when
    ``out`` holds something that no export made, and for a layout of another kind of rows."""
    if layout.of != dataset.kind:
        raise LayoutError(f"{layout.name} is a layout of {layout.of}; {dataset.name} holds {dataset.kind}")
    inputs = _inputs(dataset, layout)
    facts = marker_facts(out)
    is_done = facts.get("inputs") == inputs and "layout" in facts and facts.get("files") == _sizes(out)
    if "layout" not in facts and out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise LayoutError(f"{out} holds something that no export made: name another folder, or empty it yourself")
    if not is_done:
        _replace(out, dataset, layout, inputs)
        facts = marker_facts(out)
    return Exported(out, facts["n_rows"], facts["n_images"], facts["reasons"], is_done, facts.get("manifest", ""))


def _replace(out: Path, dataset: ExportSource, layout: Layout, inputs: str) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    for orphan in out.parent.glob(f".{out.name}.*.part"):
        shutil.rmtree(orphan)  # left by a process that was killed while it wrote
    part = out.with_name(f".{out.name}.{uuid4().hex}.part")
    part.mkdir()
    try:
        _write(dataset, layout, part, inputs)
        replace_folder(out, part)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def write_records(dataset: ExportSource, layout: Layout, writer: RecordWriter) -> None:
    """Every row that the layout can hold, verified; the others go to the writer's rejects."""
    prompts: set[str] = set()
    for index, row in enumerate(dataset.rows()):
        try:
            export_row, files = _export_row(row, layout, dataset.split, index)
            if layout.prompts_only:
                messages = as_json(tuple(Message(turn.role, turn.parts) for turn in export_row.turns))
                if (key := digest([messages, row["answer"]])) in prompts:
                    raise Unrenderable(Unfit.DUPLICATE_PROMPT, "an earlier row asks the same; a prompt is needed once")
                prompts.add(key)
            record = layout.render(export_row)
            verify(layout, record)
        except Unrenderable as error:
            writer.reject(str(row[KEYS[layout.of]]), error)
            continue
        for path, data in files.items():
            writer.image(path, data)
        grader = grader_of(row).kind if layout.of == "prompts" else ""
        writer.most_pixels = max([writer.most_pixels, *(ref.width * ref.height for ref in refs(row))])
        writer.row(record, group=export_row.loss if layout.by_loss else "", grader=grader)


def _export_row(row: Row, layout: Layout, split: str, index: int) -> tuple[ExportRow, dict[str, bytes]]:
    turns_of = opening if layout.prompts_only else turns
    row_turns = (prompt if layout.of == "prompts" else turns_of)(row)
    images = list(_images(row))[: sum(len(turn.images) for turn in row_turns)]
    files = {f"images/{name}": data for name, data in images} if layout.media == "paths" else {}
    media = (f"images/{name}" if files else {"bytes": data, "path": name} for name, data in images)
    return ExportRow(row, row_turns, tuple(media), split, index), files


def _images(row: Row) -> Iterator[tuple[str, bytes]]:
    """File name and bytes of every image, verified: present, and with the bytes of their digests."""
    images, described = row["images"] or [], refs(row)
    if len(images) != len(described):
        raise Unrenderable(Unfit.IMAGES_DIFFER, f"the row holds {len(images)} images and describes {len(described)}")
    for image, ref in zip(images, described, strict=True):
        data = image["bytes"] if image else None
        if not data:
            raise Unrenderable(Unfit.MISSING_IMAGE, f"the bytes of image {ref.sha256} are not in the row")
        if digest_bytes(data) != ref.sha256:
            raise Unrenderable(Unfit.CHANGED_IMAGE, f"image {ref.sha256} has other bytes than its digest says")
        yield f"{ref.sha256}.{ref.format.lower()}", data


def _write(dataset: ExportSource, layout: Layout, folder: Path, inputs: str) -> None:
    with RecordWriter(folder, layout, dataset.split) as writer:
        write_records(dataset, layout, writer)
    files, graders = (dict(sorted(counts.items())) for counts in (writer.n_rows, writer.graders))
    counted = {"n_rows": writer.n_rows.total(), "n_images": writer.n_images, "most_pixels": writer.most_pixels}
    facts = ExportFacts(dataset, files, reasons=dict(writer.reasons), graders=graders, **counted)
    digests = verify_written(folder, layout, facts.files)
    for name, text in layout.extra_files(facts).items():
        (folder / name).write_text(text)
    if layout.of == "prompts":
        shutil.copyfile(REWARD, folder / REWARD.name)
    (folder / "README.md").write_text(render(_README, layout=layout, facts=facts) + "\n")
    counts = {"n_rows": facts.n_rows, "n_images": facts.n_images, "manifest": write_manifest(folder, digests)}
    marker = {"layout": layout.name, "inputs": inputs, **counts, "reasons": facts.reasons, "files": _sizes(folder)}
    (folder / MARKER).write_text(json.dumps(marker, sort_keys=True))


_READING = ("publishing.dataset_reader", "publishing.manifest", "publishing.rendering")
_ASKING = ("models.messages", "models.prompts", "models.protocols")
_CODE = (__package__, "darkroom.adapters", *(f"darkroom.pipelines.{module}" for module in (*_READING, *_ASKING)))
"""What decides the bytes of an export."""


def _inputs(dataset: ExportSource, layout: Layout) -> str:
    files = [file_digest(path) for path in dataset.files]
    form = [dataset.kind, dataset.protocol, dataset.mode]
    return digest(["layout", layout.name, dataset.name, dataset.split, form, files, code_digest(*_CODE)])


def _sizes(folder: Path) -> dict[str, int]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != MARKER)
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}
