"""What the gallery shows of one row or one reject: plain values for the page, and the pictures that belong to it.

Every text goes into the page as text; programs come as pieces, ``[class, text]``, so that no markup is made here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from PIL import Image
from pygments.lexers import PythonLexer
from pygments.token import STANDARD_TYPES

from pipelines.decoding import decode
from pipelines.gallery.pictures import OBSERVATION_SIDE, QUESTION_SIDE, encode, name_of, outlined
from pipelines.images import ImageMissing, ImageStore
from pipelines.records import ImageRef, Reject, Sample, from_row
from pipelines.stages import reason_of

_LEXER = PythonLexer(stripnl=False, ensurenl=False)
_FACTS = ("model", "revision", "sampling", "prompt_digest", "sandbox_digest", "seed", "code_version")


@dataclass(frozen=True, slots=True)
class Entry:
    """One article of the page: JSON, and its pictures by name."""

    content: Mapping[str, Any]
    pictures: Mapping[str, bytes] = field(default_factory=dict)


def entry_of_row(row: Mapping[str, Any]) -> Entry:
    """A row of a shipped dataset, its images' bytes included."""
    images = [decode(image["bytes"]) for image in row["images"]]
    n = row["n_question_images"]
    rounds = [(turn, [images[place] for place in turn["observation"]["images"]]) for turn in row["rounds"]]
    return _entry(row, row, images[:n], rounds, n_videos=len(row.get("videos") or ()))


def entry_of_reject(reject: Reject, sample: Sample | None, store: ImageStore) -> Entry:
    """A row that a stage took out, as far as it had come; ``sample`` is its question where intake made one."""
    row = json.loads(reject.row)
    asked = _asked(reject, sample, row)
    images, missing = _opened(row.get("images") or (), store)
    rounds = []
    for turn in row.get("rounds") or ():
        shown, gone = _opened(turn["observation"]["images"], store)
        rounds.append((turn, shown))
        missing += gone
    why = {
        "stage": reject.stage,
        "reason": reason_of(reject),
        "disposition": reject.disposition,
        "evidence": reject.evidence,
        "missing": missing,
        "expected": asked.get("expected", ""),
        "raw": "" if sample else json.dumps(row, indent=1, ensure_ascii=False),
    }
    return _entry(row, asked, images, rounds, why=why, n_videos=len(sample.videos) if sample else 0)


def _asked(reject: Reject, sample: Sample | None, row: Mapping[str, Any]) -> dict[str, Any]:
    """What a reject's own row doesn't say of itself."""
    named = {"family": reject.family or "intake", "source": reject.source, "source_row": reject.source_row}
    if sample is None:
        known = {name: row[name] for name in ("question", "choices", "category", "license") if name in row}
        return {**known, **named}
    told = {name: getattr(sample, name) for name in ("question", "choices", "category", "license", "source_row")}
    return {**named, **told, "source": sample.source, "expected": sample.answer, "sample_id": sample.sample_id}


def _opened(images: Sequence[Any], store: ImageStore) -> tuple[list[Image.Image], int]:
    """The images that are in the store, and how many are not; intake's rejects only say how large theirs were."""
    found, missing = [], 0
    for image in images:
        try:
            found.append(store.open(from_row(ImageRef, image)) if isinstance(image, dict) else None)
        except ImageMissing:
            missing += 1
    return [image for image in found if image is not None], missing


def _entry(
    row: Mapping[str, Any],
    asked: Mapping[str, Any],
    images: Sequence[Image.Image],
    rounds: Sequence[tuple[Mapping[str, Any], Sequence[Image.Image]]],
    *,
    n_videos: int,
    why: Mapping[str, Any] | None = None,
) -> Entry:
    pictures: dict[str, bytes] = {}

    def shown(some: Sequence[Image.Image], side: int) -> list[str]:
        encoded = [encode(image, side) for image in some]
        pictures.update((name_of(data), data) for data in encoded)
        return [name_of(data) for data in encoded]

    crops = [(image, turn["code"]) for turn, seen in rounds for image in seen]
    first, n_outlined = outlined(images[0], crops) if images and crops else (None, 0)
    marked = [first, *images[1:]] if first is not None else images
    content = {
        "id": row.get("trajectory_id") or asked.get("sample_id") or "",
        "family": asked["family"],
        "category": asked.get("category") or "",
        "source": asked.get("source") or "",
        "source_row": asked.get("source_row") or "",
        "license": asked.get("license") or "",
        "question": asked.get("question") or "",
        "choices": list(asked.get("choices") or ()),
        "sizes": [f"{image.width} × {image.height}" for image in images],
        "n_outlined": n_outlined,
        "n_videos": n_videos,
        "pictures": shown(marked, QUESTION_SIDE),
        "rounds": [{**_round(turn), "pictures": shown(seen, OBSERVATION_SIDE)} for turn, seen in rounds],
        "draft": row.get("text") or "",
        "thought": row.get("final_thought") or "",
        "answer": row.get("answer") or "" if "rounds" in row else "",
        "checks": list(row.get("checks") or ()),
        "usage": row.get("usage") or {},
        "policy": (row.get("provenance") or {}).get("policy", ""),
        "facts": {name: str(value) for name, value in (row.get("provenance") or {}).items() if name in _FACTS},
        "reject": why,
    }
    return Entry(content, pictures)


def _round(turn: Mapping[str, Any]) -> dict[str, Any]:
    seen = turn["observation"]
    said = {name: seen[name] or "" for name in ("status", "text", "error")}
    return {"thought": turn["thought"], "code": pieces(turn["code"]), "edits": list(seen["edits"] or ()), **said}


def pieces(code: str) -> list[tuple[str, str]]:
    """Code in pieces of one kind, each with its class of the stylesheet; together they are ``code`` again."""
    found: list[tuple[str, str]] = []
    for token, text in _LEXER.get_tokens(code):
        kind = STANDARD_TYPES.get(token, "")
        if found and found[-1][0] == kind:
            found[-1] = (kind, found[-1][1] + text)
        else:
            found.append((kind, text))
    return found
