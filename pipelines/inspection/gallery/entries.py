"""One row, reject or rollout as pages show it: the values of its article, whose template escapes every text (only code
brings markup, the spans of its tokens), and the images that belong to it."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from markupsafe import Markup, escape
from PIL import Image, ImageDraw
from pygments.lexers import PythonLexer
from pygments.token import STANDARD_TYPES

from darkroom.pipelines.models.parsing import literal_boxes
from darkroom.pipelines.publishing.rendering import render
from darkroom.pipelines.records import ImageRef, Reject, Sample, Trajectory, to_row
from darkroom.pipelines.records.annotation import asked
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.records.samples import numbered_marks
from darkroom.pipelines.storage.images import ImageMissing, ImageStore
from darkroom.pipelines.storage.media_validation import decode, encode, on_white
from darkroom.pipelines.storage.row_files import RowStream
from darkroom.pipelines.storage.stage_runs import reason_of
from darkroom.pipelines.vision.crop_localization import locate_crop

QUESTION_SIDE, OBSERVATION_SIDE = 900, 520
_OUTLINE = (255, 0, 90)
_LEXER = PythonLexer(stripnl=False, ensurenl=False)
_FACTS = ("model", "revision", "sampling", "prompt_digest", "sandbox_digest", "seed", "code_version")
_QUESTION = ("question", "choices", "category", "license")
_HERE = Path(__file__).parent
_DIGEST = re.compile("[0-9a-f]{32,}")
_NAMES = ("id", "link", "step", "kind", "family", "category", "source", "source_row", "license", "policy")
_TEXTS = ("prompt", "question", "draft", "thought", "answer", "problem", "expected", "written")
_BLANK: Mapping[str, Any] = (
    dict.fromkeys((*_NAMES, *_TEXTS), "")
    | dict.fromkeys(("choices", "sizes", "images", "rounds", "checks"), ())
    | {"n_outlined": 0, "n_videos": 0, "usage": {}, "facts": {}, "reject": None, "reward": None}
)


@dataclass(frozen=True, slots=True)
class Entry:
    """The values of one article (``article.html.jinja``), and its images by name."""

    content: Mapping[str, Any]
    images: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, images_by_name: Mapping[str, bytes] = MappingProxyType({}), **content: Any) -> Self:
        """An entry with some of the fields."""
        return cls({**_BLANK, **content}, images_by_name)

    @property
    def filters(self) -> dict[str, list[str]]:
        entry, reject = self.content, self.content["reject"]
        return {
            "step": [entry["step"]] if entry["step"] else [],
            "kind": [entry["kind"] or (reject["disposition"] if reject else "accepted")],
            "family": [entry["family"]],
            "category": [entry["category"] or "none"],
            "check": sorted({f"{check['name']}: {outcome(check)}" for check in entry["checks"]}),
            "reason": [reject["reason"]] if reject else [],
        }

    def html(self, address: Callable[[str], Markup] = lambda name: Markup('data-image="{}"').format(name)) -> str:
        """The article; ``address`` is the attribute of an image, for scripts by default. All text is escaped."""
        entry = self.content
        facts = {"id": entry["id"], "source": entry["source"], "row": entry["source_row"], "license": entry["license"]}
        facts |= {**entry["facts"], **entry["usage"]}
        return render(
            "article.html.jinja",
            _HERE,
            entry=entry,
            tags=list(_tags(entry)),
            facts={name: fact for name, fact in facts.items() if fact != ""},
            address=address,
        )


class _Tag(NamedTuple):
    text: str
    tone: str = ""
    title: str = ""


def _tags(entry: Mapping[str, Any]) -> Iterator[_Tag]:
    """A training's reward with its parts and advantage, then names; a digest is cut, and whole in its title."""
    if reward := entry["reward"]:
        advantage = reward["advantage"]
        tone = "passed" if (advantage or 0) > 0 else "failed" if (advantage or 0) < 0 else ""
        yield _Tag(f"reward {signed(reward['total'])}")
        yield _Tag(f"advantage {signed(advantage, '+')}", tone)
        yield from (_Tag(f"{name} {signed(value)}") for name, value in reward["parts"].items())
    names = (entry[name] for name in ("step", "family", "category", "source_row"))
    for name in filter(None, (*names, entry["policy"] and f"written by {entry['policy']}")):
        yield _Tag(f"{name[:12]}…", title=name) if _DIGEST.fullmatch(name) else _Tag(name)


def signed(value: float | None, sign: str = "") -> str:
    """A reward as pages show it."""
    return "none" if value is None else f"{value:{sign}.3g}"


def outcome(check: Mapping[str, Any]) -> str:
    """``passed``, or why not."""
    return "passed" if check["passed"] else check["reason"] or "failed"


@dataclass(frozen=True, slots=True)
class RejectedRows:
    """Rejects to show, rows that are not applicable among them, each with its sample where it has one; their images."""

    rows: Collection[tuple[Reject, Sample | None]]
    store: ImageStore
    state: Any = None
    """Another one where a table of them was written again."""

    def page(self, number: int, n_most: int) -> Self:
        """Pages have so many at most, and numbers from 1 on."""
        begin = (number - 1) * n_most
        n_rows = min(max(len(self.rows) - begin, 0), n_most)
        return replace(self, rows=RowStream(n_rows, lambda: islice(self.rows, begin, begin + n_rows)))


def entry_of_row(row: Mapping[str, Any]) -> Entry:
    images = [image["bytes"] for image in row["images"]]
    rounds = [(turn, [images[place] for place in turn["observation"]["images"]]) for turn in row["rounds"]]
    question_images = list(map(_shown, images[: row["n_question_images"]]))
    return _entry(row, row, question_images, rounds, n_videos=len(row.get("videos") or ()))


def entry_of_reject(reject: Reject, sample: Sample | None, store: ImageStore) -> Entry:
    """A rejected row, as far as it had come; ``sample`` is its question where intake made one."""
    row = json.loads(reject.row)
    question = question_of_reject(reject, sample, row)
    images, rounds, n_missing = _stored_images(row, store)
    why = {name: getattr(reject, name) for name in ("stage", "disposition", "evidence")}
    raw = "" if sample else json.dumps(row, indent=1, ensure_ascii=False)
    why |= {"reason": reason_of(reject), "missing": n_missing, "raw": raw}
    return _entry(row, question, images, rounds, n_videos=len(sample.videos) if sample else 0, why=why)


def entry_of_trajectory(trajectory: Trajectory, sample: Sample, store: ImageStore) -> Entry:
    """A row that no dataset holds yet, with the images of ``store``."""
    row = to_row(trajectory)
    images, rounds, _ = _stored_images(row, store)
    names = {name: getattr(sample, name) for name in _QUESTION}
    question = {**names, "sample_id": sample.sample_id, "family": trajectory.family, "expected": sample.answer}
    return _entry(row, question, images, rounds, n_videos=len(sample.videos))


def entry_of_record(sample: Sample, trajectory: Trajectory | None = None) -> Entry:
    """A sample without its answer, or a trajectory about it; images are named by their digests."""
    question, *choices = numbered_marks((sample.question, *sample.choices))
    content: dict[str, Any] = {"question": question, "choices": choices}
    if trajectory is None:
        return Entry.of(**content, images=_names(sample.images))
    rounds = [
        {**_round(to_row(turn)), "edits": [], "images": _names(turn.observation.images)} for turn in trajectory.rounds
    ]
    content |= {"thought": trajectory.final_thought, "answer": trajectory.answer, "expected": sample.answer}
    return Entry.of(**content, images=_names(trajectory.images), rounds=rounds)


def entry_of_sample(sample: Sample, store: ImageStore) -> Entry:
    """A sample of a source with its images and the boxes of its targets, drawn."""
    images = [on_white(store.open(image)).convert("RGB") for image in sample.images]
    for target in sample.truth.boxes:
        width = max(2, max(images[target.image].size) // 400)
        ImageDraw.Draw(images[target.image]).rectangle(target.box.grown(width), outline=_OUTLINE, width=width)
    names = {"family": "source", "source": sample.source, "source_row": sample.source_row, "expected": sample.answer}
    question = {**names, **{name: getattr(sample, name) for name in (*_QUESTION, "sample_id")}}
    shown = [_Shown(image, _shrunk(image, QUESTION_SIDE)) for image in images]
    return _entry({}, question, shown, (), n_videos=len(sample.videos))


def _names(images: Sequence[ImageRef]) -> list[str]:
    return [image.sha256 for image in images]


def question_of_reject(reject: Reject, sample: Sample | None, row: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that a reject's own row lacks: family, source and, with a sample, its question."""
    names = {"family": reject.family or "intake", "source": reject.source, "source_row": reject.source_row}
    if sample is None:
        return {**{name: row[name] for name in _QUESTION if name in row}, **names}
    columns = {name: getattr(sample, name) for name in (*_QUESTION, "source_row", "source", "sample_id")}
    return {**names, **columns, "expected": sample.answer}


def _stored_images(
    row: Mapping[str, Any], store: ImageStore
) -> tuple[list["_Shown"], list[tuple[Mapping[str, Any], list[bytes]]], int]:
    """The images of a row, those of each round, and how many are not in the store. Intake's rejects have only sizes."""
    n_missing = 0

    def read(images: Sequence[Any]) -> Iterator[bytes]:
        nonlocal n_missing
        for image in filter(lambda image: isinstance(image, dict), images):
            try:
                yield store.read(image["sha256"])
            except ImageMissing:
                n_missing += 1

    images = list(map(_shown, read(row.get("images") or ())))
    rounds = [(turn, list(read(turn["observation"]["images"]))) for turn in row.get("rounds") or ()]
    return images, rounds, n_missing


def _entry(
    row: Mapping[str, Any],
    question: Mapping[str, Any],
    question_images: Sequence["_Shown"],
    rounds: Sequence[tuple[Mapping[str, Any], Sequence[bytes]]],
    *,
    n_videos: int,
    why: Mapping[str, Any] | None = None,
) -> Entry:
    """The entry of a question's images, and of each round's observation."""
    files: dict[str, bytes] = {}

    def encoded(images: Iterable[Image.Image]) -> list[str]:
        jpegs = [encode(image, "JPEG", quality=86) for image in images]
        names = [f"{digest_bytes(jpeg)[:24]}.jpg" for jpeg in jpegs]
        files.update(zip(names, jpegs, strict=True))
        return names

    provenance = row.get("provenance") or {}
    observations = [[decode(data) for data in observed] for _, observed in rounds]
    crops = [(image, turn["code"]) for (turn, _), seen in zip(rounds, observations, strict=True) for image in seen]
    images, n_outlined = [image.small for image in question_images], 0
    if images and crops:
        images[0], n_outlined = outlined(question_images[0], crops)
    text, *choices = numbered_marks((question.get("question") or "", *(question.get("choices") or ())))
    content = {
        "id": row.get("trajectory_id") or question.get("sample_id") or "",
        "link": link_of(row, question),
        "family": question["family"],
        **{name: question.get(name) or "" for name in ("category", "source", "source_row", "license")},
        "question": text,
        "choices": choices,
        "sizes": [f"{image.pixels.width} × {image.pixels.height}" for image in question_images],
        "n_outlined": n_outlined,
        "n_videos": n_videos,
        "images": encoded(images),
        "rounds": [
            {**_round(turn), "images": encoded(_shrunk(image, OBSERVATION_SIDE) for image in seen)}
            for (turn, _), seen in zip(rounds, observations, strict=True)
        ],
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
    return Entry.of(files, **content)


def link_of(row: Mapping[str, Any], question: Mapping[str, Any]) -> str:
    """Name of an entry in its address: a trajectory, or a sample or a source row in a family."""
    place = f"{question.get('source')}:{question.get('source_row')}"
    return row.get("trajectory_id") or f"{question.get('sample_id') or place}/{question['family']}"


def _round(turn: Mapping[str, Any]) -> dict[str, Any]:
    observation = turn["observation"]
    texts = {name: observation[name] or "" for name in ("status", "text", "error")}
    edits = list(observation["edits"] or ())
    return {"thought": turn["thought"], "code": code_html(turn["code"]), "edits": edits, **texts}


def code_html(code: str) -> Markup:
    tokens = ((STANDARD_TYPES.get(token, ""), text) for token, text in _LEXER.get_tokens(code))
    runs = ((kind, "".join(text for _, text in run)) for kind, run in groupby(tokens, key=itemgetter(0)))
    span = Markup('<span class="{}">{}</span>')
    return Markup("").join(span.format(kind, text) if kind else escape(text) for kind, text in runs)


class _Shown(NamedTuple):
    """An image of a question, and as pages show it."""

    pixels: Image.Image
    small: Image.Image


@lru_cache(maxsize=2)  # rows about one image follow each other
def _shown(data: bytes) -> _Shown:
    pixels = decode(data)
    return _Shown(pixels, _shrunk(pixels, QUESTION_SIDE))


def outlined(image: _Shown, crops: Sequence[tuple[Image.Image, str]]) -> tuple[Image.Image, int]:
    """A small copy with the regions of ``crops``, each with its code, outlined, whole images apart; their number."""
    plain, marked = _plain(image.pixels), image.small.copy()
    located = [locate_crop(_plain(crop), plain, literal_boxes(code, *plain.size)) for crop, code in crops]
    boxes = [match.box for match in located if match is not None and match.box.area < plain.width * plain.height]
    width, scale = max(4, max(plain.size) // 250), marked.width / plain.width
    for box in boxes:
        corners = [side * scale for side in box.grown(width)]
        ImageDraw.Draw(marked).rectangle(corners, outline=_OUTLINE, width=max(2, round(width * scale)))
    return marked, len(boxes)


def _plain(image: Image.Image) -> Image.Image:
    """The image in RGB, on white; itself where it is that, since copies of large ones are slow."""
    opaque = on_white(image)
    return opaque if opaque.mode == "RGB" else opaque.convert("RGB")


def _shrunk(image: Image.Image, side: int) -> Image.Image:
    """A copy of at most ``side`` pixels on either side: means of whole pixels first, which is several times faster."""
    small = _plain(image).reduce(max(1, max(image.size) // side))
    small.thumbnail((side, side), Image.Resampling.BICUBIC)
    return small
