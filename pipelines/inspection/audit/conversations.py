"""Rows that are conversations: another trainer's export of ours, or a released trajectory file by its mapping.

They are read by ``pipelines/sources/transcripts.py``. What they do not hold (seeds, recorded verdicts, the truth about
a sample) is not audited; each round's observation is compared as its reader sees it: images, and of rounds without
images the text. Exports hold exact images; a release may have re-encoded its own (``replays_as_released``).
"""

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from darkroom.pipelines.models.protocols import PROTOCOLS, ParsedTurn
from darkroom.pipelines.publishing.dataset_reader import read_marker
from darkroom.pipelines.publishing.layouts.turns import unescaped
from darkroom.pipelines.publishing.manifest import MANIFEST
from darkroom.pipelines.publishing.replay import Execute, NotComparable
from darkroom.pipelines.records import ImageRef, Observation, to_row
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.sources import BadRow, SourceRow
from darkroom.pipelines.sources.catalog import open_source, placed, public_sources, read_config
from darkroom.pipelines.sources.columns import Columns, TranscriptColumns
from darkroom.pipelines.sources.jsonl import parsed_lines
from darkroom.pipelines.sources.mapping import map_row
from darkroom.pipelines.sources.source_config import SourceConfig
from darkroom.pipelines.sources.transcripts import RELEASED
from darkroom.pipelines.storage.atomic_write import MARKER
from darkroom.pipelines.verification.checks.output import MAX_DIFFERENCE, observation_difference
from darkroom.sandbox.errors import UserError, raised_as

EXPORTS: Mapping[str, str] = {"llama_factory": "conversations", "ms_swift": "messages", "ms_swift_inline": "messages"}
"""Layouts that are read back, with their column of messages."""


@dataclass(frozen=True, slots=True)
class Conversations:
    """Rows to audit. ``max_difference``: what images may differ by, on average, in levels of 255."""

    name: str
    rows: Iterator[SourceRow | BadRow]
    n_rows: int
    """0 where it is not known before they are read."""
    max_difference: float
    folder: Path | None
    """The export's; None for a release."""
    is_escaped: bool
    """Whether special tokens and placeholders in texts are escaped (``layouts/turns.py``)."""
    note: str = ""
    """What cannot be audited."""


def find_conversations(path: Path, mapping: str | None) -> Conversations | None:
    """The rows of an export's folder, or of a release by ``mapping`` (a public source's name, or a YAML file). None for
    a folder that is neither. Raises ``UserError``, ``SourceError``."""
    if mapping is not None:
        source = open_source("release", _mapped(path, mapping))
        return Conversations(path.name, source.rows(0), 0, MAX_DIFFERENCE, None, is_escaped=False)
    with raised_as(lambda error: UserError(f"{path / MARKER} cannot be read: {error}"), ValueError):
        facts = read_marker(path)
    if "layout" not in facts:
        return None
    if (layout := facts["layout"]) not in EXPORTS:
        note = f"{path} is an export for {layout}; of these only files and rows are compared with {MANIFEST}"
        if not (path / MANIFEST).is_file():
            raise UserError(f"{note}, which is not there; exports for {', '.join(EXPORTS)} are read, too")
        return Conversations(path.name, iter(()), 0, 0.0, path, is_escaped=True, note=note)
    rows = _export_rows(path, EXPORTS[layout])
    return Conversations(path.name, rows, facts.get("n_rows", 0), 0.0, path, is_escaped=True)


def row_of(source: SourceRow, *, is_escaped: bool) -> dict[str, Any]:
    """The columns of a shipped row, as far as a conversation has them."""
    release = json.loads(source.truth.details or "{}")[RELEASED]
    refs = [_described(data) for data in source.images]
    protocol = PROTOCOLS[release["protocol"]]
    plain = unescaped if is_escaped else str
    turns = [protocol.parse(plain(text)) for text in release["turns"]]
    rounds, position = [], release["n_question_images"]
    for turn, observed in zip(turns, release["observations"], strict=False):
        assert isinstance(turn, ParsedTurn)  # the reader has parsed it
        places = list(range(position, position := position + observed["n_images"]))
        observation = {"status": None, "text": plain(observed["text"]), "images": places, "error": None, "edits": []}
        rounds.append({"thought": turn.thought, "code": turn.code or "", "observation": observation})
    last = turns[-1]
    assert isinstance(last, ParsedTurn)
    facts = dict.fromkeys(("policy", "model", "revision", "sampling", "prompt_digest", "code_version"), "")
    return {
        **dict.fromkeys(("trajectory_id", "sample_id", "source_row"), source.row),
        "protocol": protocol.name,
        "images": [{"bytes": data} for data in source.images],
        "image_refs": [to_row(ref) for ref in refs],
        "n_question_images": release["n_question_images"],
        "rounds": rounds,
        "final_thought": last.thought,
        "answer": last.answer or "",
        "loss_policy": "all_rounds",
        "mode": "free",
        "checks": [],
        "provenance": facts | {"sandbox_digest": "", "seed": 0},
        "choices": list(source.choices),
        **{name: getattr(source, name) for name in ("question", "category", "license")},
        "family": "",
        "source": "",
    }


def execute_rounds(row: dict[str, Any], execute: Execute, max_difference: float) -> list[tuple[int, str]]:
    """Executes a row's code and enters status and error into its rounds. Returns (round, difference) of those that
    show something else. Raises what ``execute`` raises, and ``NotComparable`` for code about a video."""
    if any(name in turn["code"] for turn in row["rounds"] for name in ("video_clue", "video_path")):
        raise NotComparable("the code reads a video, and conversations hold none")
    differences = []
    for number, (turn, now) in enumerate(zip(row["rounds"], execute(row), strict=True), start=1):
        recorded = turn["observation"]
        released = [Image.open(io.BytesIO(row["images"][place]["bytes"])) for place in recorded["images"]]
        pixels = [image.pixels for image in now.images]
        refs = tuple(ImageRef("", image.width, image.height, image.mode, "PNG") for image in pixels)
        observation = Observation(now.status, now.text, refs, now.error)
        difference = observation_difference(
            row["protocol"], observation, pixels, recorded["text"], released, max_difference=max_difference
        )
        if difference:
            differences.append((number, difference))
        recorded |= {"status": now.status, "text": now.text, "error": now.error}
    return differences


def _mapped(path: Path, mapping: str) -> SourceConfig:
    if mapping in public_sources():
        config = placed(mapping, path)
    else:
        config = read_config(Path(mapping))
        place = {"path": str(path.absolute())} if path.is_dir() else None
        config = config.model_copy(update=place or {"path": str(path.absolute().parent), "questions": path.name})
    if not config.is_release:
        names = ", ".join(name for name, public in public_sources().items() if public.is_release)
        raise UserError(f"--mapping {mapping} is of the kind {config.kind}; of `trajectories` are: {names}")
    return config


def _export_rows(folder: Path, column: str) -> Iterator[SourceRow | BadRow]:
    for path in sorted(folder.glob("*.jsonl")):
        if path.name == "rejects.jsonl":
            continue
        for number, record, problem in parsed_lines(path):
            where = f"{path.name}:{number}"
            if problem or not isinstance(record, dict):
                yield BadRow(where, Reason.MALFORMED_ROW, problem or "expected an object", {})
                continue
            transcript = TranscriptColumns(column=column, dialect=_protocol_in(record.get(column)))
            columns = Columns(images="images", transcript=transcript)
            yield from map_row(record, columns, where=where, folder=folder, license="")


def _protocol_in(messages: Any) -> Any:
    """The protocol of an export's conversation, by the markers that only it writes."""
    text = json.dumps(messages)  # without the system's prompt, which names markers
    places = [place for role in ('"assistant"', '"gpt"') if (place := text.find(role)) >= 0]
    answers = text[min(places, default=0) :]
    for protocol in PROTOCOLS.values():
        if f"</{protocol.marker}>" in answers:
            return protocol.name
    return "thyme" if "</think>" in answers else "pyvision" if "<answer>" in answers else "tool_call"


def _described(data: bytes) -> ImageRef:
    with Image.open(io.BytesIO(data)) as image:
        return ImageRef(digest_bytes(data), image.width, image.height, image.mode, image.format or "")
