"""One row or one reject as the gallery shows it: plain values for the page, and the images that belong to it.

Every text goes into the page as text; code comes as tokens, ``[class, text]``, so that no markup is made here.
"""

import io
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from PIL import Image, ImageDraw
from pygments.lexers import PythonLexer
from pygments.token import STANDARD_TYPES

from darkroom.pipelines.models.parsing import literal_boxes
from darkroom.pipelines.records import ImageRef, Reject, Sample, from_row
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.records.origin_labels import asked
from darkroom.pipelines.selection.duplicates.looks import on_white
from darkroom.pipelines.storage.images import ImageMissing, ImageStore
from darkroom.pipelines.storage.media_validation import decode
from darkroom.pipelines.storage.stage import reason_of
from darkroom.pipelines.vision.crop_localization import locate_crop

QUESTION_SIDE, OBSERVATION_SIDE = 900, 520
_OUTLINE = (255, 0, 90)
_LEXER = PythonLexer(stripnl=False, ensurenl=False)
_FACTS = ("model", "revision", "sampling", "prompt_digest", "sandbox_digest", "seed", "code_version")
_QUESTION = ("question", "choices", "category", "license")


@dataclass(frozen=True, slots=True)
class Entry:
    """One article of the page: JSON as ``article.js`` draws it, and its images by name."""

    content: Mapping[str, Any]
    images: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, **content: Any) -> Self:
        """An entry with some of the fields; its images have addresses already."""
        texts = ("id", "link", "family", "category", "source", "source_row", "license", "question", "draft", "thought")
        lists = dict.fromkeys(("choices", "sizes", "images", "rounds", "checks"), ())
        rest = {"n_outlined": 0, "n_videos": 0, "usage": {}, "facts": {}, "reject": None}
        return cls({**dict.fromkeys((*texts, "answer", "expected", "policy"), ""), **lists, **rest, **content})


@dataclass(frozen=True, slots=True)
class RejectedRows:
    """Rejects to show, each with its sample where it has one, and the store with their images."""

    rows: Collection[tuple[Reject, Sample | None]]
    store: ImageStore
    state: Any = None
    """Another one where a table of them was written again."""


@dataclass(frozen=True, slots=True)
class _Media:
    """The decoded images of a row: of its question, and of each round's observation."""

    question: Sequence[Image.Image]
    rounds: Sequence[tuple[Mapping[str, Any], Sequence[Image.Image]]]
    n_videos: int = 0


def entry_of_row(row: Mapping[str, Any]) -> Entry:
    """A row of a shipped dataset, its images' bytes included."""
    images = [decode(image["bytes"]) for image in row["images"]]
    rounds = [(turn, [images[place] for place in turn["observation"]["images"]]) for turn in row["rounds"]]
    return _entry(row, row, _Media(images[: row["n_question_images"]], rounds, len(row.get("videos") or ())))


def entry_of_reject(reject: Reject, sample: Sample | None, store: ImageStore) -> Entry:
    """A rejected row, as far as it had come; ``sample`` is its question where intake made one."""
    row = json.loads(reject.row)
    question = question_of_reject(reject, sample, row)
    images, n_missing = _opened(row.get("images") or (), store)
    rounds = []
    for turn in row.get("rounds") or ():
        observed, n_lost = _opened(turn["observation"]["images"], store)
        rounds.append((turn, observed))
        n_missing += n_lost
    why = {
        "stage": reject.stage,
        "reason": reason_of(reject),
        "disposition": reject.disposition,
        "evidence": reject.evidence,
        "missing": n_missing,
        "raw": "" if sample else json.dumps(row, indent=1, ensure_ascii=False),
    }
    return _entry(row, question, _Media(images, rounds, len(sample.videos) if sample else 0), why=why)


def question_of_reject(reject: Reject, sample: Sample | None, row: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that a reject's own row lacks: family, source and, with a sample, its question."""
    names = {"family": reject.family or "intake", "source": reject.source, "source_row": reject.source_row}
    if sample is None:
        return {**{name: row[name] for name in _QUESTION if name in row}, **names}
    columns = {name: getattr(sample, name) for name in (*_QUESTION, "source_row", "source", "sample_id")}
    return {**names, **columns, "expected": sample.answer}


def _opened(images: Sequence[Any], store: ImageStore) -> tuple[list[Image.Image], int]:
    """The images that are in the store, and how many are not; of intake's rejects, only sizes are on record."""
    opened, n_missing = [], 0
    for image in images:
        try:
            opened += [store.open(from_row(ImageRef, image))] if isinstance(image, dict) else []
        except ImageMissing:
            n_missing += 1
    return opened, n_missing


def _entry(
    row: Mapping[str, Any], question: Mapping[str, Any], media: _Media, *, why: Mapping[str, Any] | None = None
) -> Entry:
    files: dict[str, bytes] = {}

    def encoded(images: Sequence[Image.Image], side: int) -> list[str]:
        jpegs = [_encode(image, side) for image in images]
        files.update((_name_of(jpeg), jpeg) for jpeg in jpegs)
        return [_name_of(jpeg) for jpeg in jpegs]

    provenance = row.get("provenance") or {}
    crops = [(image, turn["code"]) for turn, observed in media.rounds for image in observed]
    images, n_outlined = list(media.question), 0
    if images and crops:
        images[0], n_outlined = outlined(images[0], crops)
    content = {
        "id": row.get("trajectory_id") or question.get("sample_id") or "",
        "link": link_of(row, question),
        "family": question["family"],
        **{name: question.get(name) or "" for name in ("category", "source", "source_row", "license", "question")},
        "choices": list(question.get("choices") or ()),
        "sizes": [f"{image.width} × {image.height}" for image in media.question],
        "n_outlined": n_outlined,
        "n_videos": media.n_videos,
        "images": encoded(images, QUESTION_SIDE),
        "rounds": [{**_round(turn), "images": encoded(observed, OBSERVATION_SIDE)} for turn, observed in media.rounds],
        "draft": row.get("text") or "",
        "thought": row.get("final_thought") or "",
        "answer": row.get("answer") or "" if "rounds" in row else "",
        "expected": question.get("expected", ""),
        "checks": list(row.get("checks") or ()),
        "usage": row.get("usage") or {},
        "policy": asked(provenance.get("policy", "")),
        "facts": {name: str(fact) for name, fact in provenance.items() if name in _FACTS},
        "reject": why,
    }
    return Entry(content, files)


def link_of(row: Mapping[str, Any], question: Mapping[str, Any]) -> str:
    """Name of an entry in its address: a trajectory, or a sample or a source row in a family."""
    place = f"{question.get('source')}:{question.get('source_row')}"
    return row.get("trajectory_id") or f"{question.get('sample_id') or place}/{question['family']}"


def _round(turn: Mapping[str, Any]) -> dict[str, Any]:
    observation = turn["observation"]
    texts = {name: observation[name] or "" for name in ("status", "text", "error")}
    edits = list(observation["edits"] or ())
    return {"thought": turn["thought"], "code": code_tokens(turn["code"]), "edits": edits, **texts}


def code_tokens(code: str) -> list[tuple[str, str]]:
    """Code in runs of one kind, each with its class of the stylesheet; joined they are ``code`` again."""
    tokens: list[tuple[str, str]] = []
    for token, text in _LEXER.get_tokens(code):
        kind = STANDARD_TYPES.get(token, "")
        if tokens and tokens[-1][0] == kind:
            tokens[-1] = (kind, tokens[-1][1] + text)
        else:
            tokens.append((kind, text))
    return tokens


def outlined(image: Image.Image, crops: Sequence[tuple[Image.Image, str]]) -> tuple[Image.Image, int]:
    """A copy with the regions of ``crops`` outlined, each given with its code; and how many there are.

    A crop of the whole image is not outlined.
    """
    plain, width = on_white(image).convert("RGB"), max(4, max(image.size) // 250)
    located = [locate_crop(on_white(crop).convert("RGB"), plain, literal_boxes(code)) for crop, code in crops]
    boxes = [match.box for match in located if match is not None and match.box.area < plain.width * plain.height]
    marked = plain.copy()
    for box in boxes:
        ImageDraw.Draw(marked).rectangle(box.grown(width), outline=_OUTLINE, width=width)
    return marked, len(boxes)


def _encode(image: Image.Image, side: int) -> bytes:
    """The image as a JPEG of at most ``side`` pixels on either side, on white."""
    small = on_white(image).convert("RGB")
    small.thumbnail((side, side), Image.Resampling.BICUBIC)
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=86)
    return buffer.getvalue()


def _name_of(data: bytes) -> str:
    return f"{digest_bytes(data)[:24]}.jpg"
