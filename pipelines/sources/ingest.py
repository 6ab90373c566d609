"""Intake: a source's rows become samples; damaged, invalid and duplicate rows become typed rejects."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from itertools import islice, zip_longest
from typing import Any, TypeVar

from darkroom.pipelines.records import ImageRef, Reject, Sample, Truth, TruthBox, VideoRef, to_row
from darkroom.pipelines.records.answers import letters_of
from darkroom.pipelines.records.digest import digest, digest_bytes
from darkroom.pipelines.records.reject_reasons import Reason, RowError, reject, storable
from darkroom.pipelines.sources import BadRow, Source, SourceRow, UserBoxes
from darkroom.pipelines.sources.answers import shows_words
from darkroom.pipelines.sources.boxes import BoxRow, box_in_pixels, check_column
from darkroom.pipelines.sources.intake_notes import IntakeNotes, NoteLine
from darkroom.pipelines.sources.mapping import shortened
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.media_validation import derived_steps
from darkroom.pipelines.storage.removal import TakeDowns, digests_of, find_entry
from darkroom.sandbox.errors import raised_as

STAGE = "samples"
_LONGEST = 200_000
"""Characters of a text: about the tokens of a model's context."""
_N_FIRST = 2000
"""Rows with boxes after which a wrong frame stops the shard."""
Ref = TypeVar("Ref", ImageRef, VideoRef)


@dataclass(frozen=True, slots=True)
class Intake:
    """One ingested shard; ``n_in`` counts every row of the source."""

    samples: list[Sample]
    rejects: list[Reject]
    n_in: int
    notes: list[NoteLine]
    boxes: Mapping[str, Any] | None = None
    """The frame of its boxes, whether it was stated, and what speaks against it (JSON, for cards)."""


def ingest_shard(
    source: Source,
    shard: int,
    store: ImageStore,
    *,
    n_rows: int | None = None,
    removed: TakeDowns | None = None,
) -> Intake:
    """The shard's samples, in the source's order, and its rejects; images and videos are stored. ``n_rows``: only the
    first ones; of a conversation, its samples count. ``removed``: what may not be used. Raises ``SourceError`` where
    the boxes' frame does not fit."""
    samples: dict[str, Sample] = {}
    rejects: list[Reject] = []
    notes, boxes = IntakeNotes(), _BoxColumn(source.name)
    n_in = 0
    # rows about the image of the row before are frequent: it is decoded and checked once
    add_image = lru_cache(maxsize=4)(store.ingest)
    for row in islice(source.rows(shard), n_rows):
        n_in += 1
        notes.add_row(row)
        try:
            data = () if isinstance(row, BadRow) or not removed else (*row.images, *row.videos)
            _require_allowed(source.name, row.row, map(digest_bytes, data), removed)  # before anything is stored
            sample = _sample(source.name, row, add_image, store.add_video, boxes)
            _require_allowed(source.name, row.row, digests_of(sample), removed)  # what was made of them, too
            if sample.sample_id in samples:
                raise RowError(Reason.DUPLICATE, f"the same content as {samples[sample.sample_id].source_row}")
        except RowError as error:
            rejects.append(_rejected(source.name, row, error))
        else:
            samples[sample.sample_id] = sample
    frame = boxes.checked()
    lines = [NoteLine(len(boxes.rows), in_words(frame))] if frame else []
    derived = Counter(step for sample in samples.values() for step in derived_steps(sample))
    lines += [NoteLine(n, f"samples with {step}") for step, n in sorted(derived.items())]
    return Intake(list(samples.values()), rejects, n_in, [*lines, *notes.lines()], frame)


def _require_allowed(source: str, row: str, digests: Iterable[str], removed: TakeDowns | None) -> None:
    """Raises ``RowError`` for a row that was taken down."""
    if removed and (entry := find_entry(removed, source, row, digests)):
        raise RowError(Reason.REMOVED, entry.evidence)


def _sample(
    source: str,
    row: SourceRow | BadRow,
    add_image: Callable[[bytes], ImageRef],
    add_video: Callable[[bytes], VideoRef],
    boxes: "_BoxColumn",
) -> Sample:
    if isinstance(row, BadRow):
        raise RowError(row.reason, row.evidence)
    answer = _checked_answer(row)
    names = _media_names(row)
    images = tuple(map(partial(_stored, add_image), row.images, names))
    videos = tuple(map(partial(_stored, add_video), row.videos, names[len(images) :]))
    if row.cuts:
        origins = zip(videos, row.cuts, strict=True)
        videos = tuple(replace(video, parent=parent, made_by=made_by) for video, (parent, made_by) in origins)
    truth = row.truth if row.boxes is None else boxes.truth(row.truth, row.boxes, images)
    _check_boxes(truth, images)
    question = row.question
    if row.boxes is not None and row.boxes.fills_question and truth.boxes:
        question = question.replace("{box}", str(tuple(truth.boxes[0].box)))
    shown = {"images": [image.sha256 for image in images]}
    shown |= {"videos": [video.sha256 for video in videos]} if videos else {}
    asked = {"question": question, "choices": list(row.choices), "answer": answer, "truth": to_row(truth)}
    origin = (digest({**shown, **asked}), source, row.row, row.license)
    return Sample(*origin, images, question, row.choices, answer, truth, row.category, videos)


def _checked_answer(row: SourceRow) -> str:
    """The answer; of a multiple-choice question its letter or letters, however the source spells them."""
    labels = [box.label for box in row.truth.boxes]
    labels += [box.label for box in row.boxes.boxes] if row.boxes else []
    texts = (row.row, row.question, row.answer, *row.choices, row.category, row.license, *labels)
    if (longest := max(map(len, texts))) > _LONGEST:
        raise RowError(Reason.MALFORMED_ROW, f"a text of {longest:,} characters, at most {_LONGEST:,}: cut it")
    if any(text != storable(text) or "\0" in text for text in (*texts, row.truth.details or "")):
        raise RowError(Reason.MALFORMED_ROW, "a text holds a lone surrogate or a NUL, which is no character")
    for part in ("question", "answer"):
        if not getattr(row, part).strip():
            raise RowError(Reason.MALFORMED_ROW, f"the {part} is empty")
    if row.answer.strip() == "NaN" and not row.choices and not shows_words(row.category):
        why = "the answer is NaN, a missing value; where an image shows the word, set the category to ocr or text"
        raise RowError(Reason.MALFORMED_ROW, why)
    if not row.choices:
        return row.answer
    with raised_as(lambda error: RowError(Reason.MALFORMED_ROW, str(error)), ValueError):
        letter = ", ".join(letters_of(row.answer, row.choices))
    if not letter:
        raise RowError(Reason.MALFORMED_ROW, f"the answer {row.answer!r} is none of the choices")
    return letter


def _media_names(row: SourceRow) -> list[str]:
    """Names of the images, then of the videos: ``image 0 (street.jpg)``."""
    names = [f"{kind} {n}" for kind, files in (("image", row.images), ("video", row.videos)) for n in range(len(files))]
    return [f"{name} ({file})" if file else name for name, file in zip_longest(names, row.files[: len(names)])]


def _stored(add: Callable[[bytes], Ref], data: bytes, what: str) -> Ref:
    with raised_as(lambda error: RowError(error.reason, f"{what}: {error.evidence}"), RowError):
        return add(data)


@dataclass(slots=True)
class _BoxColumn:
    """The boxes of all rows of a shard: their frame is checked on the first rows, and on all at the end."""

    source: str
    rows: list[BoxRow] = field(default_factory=list)
    spelled: UserBoxes | None = None

    def truth(self, truth: Truth, boxes: UserBoxes, images: tuple[ImageRef, ...]) -> Truth:
        """``truth`` with the row's boxes in pixels. Raises ``RowError``, and ``SourceError`` for the column."""
        self.spelled = boxes
        is_turned = ["exif_orientation" in (image.made_by or "") for image in images]
        self.rows.append(BoxRow(boxes.boxes, [(image.width, image.height) for image in images], is_turned))
        if len(self.rows) == _N_FIRST:
            self.checked()
        return replace(truth, boxes=(*truth.boxes, *_in_pixels(boxes, images)))

    def checked(self) -> Mapping[str, Any] | None:
        """The column's frame, for notes and cards. Raises ``SourceError`` where another one fits."""
        if self.spelled is None:
            return None
        column, frame = self.spelled.column, self.spelled.frame
        doubts = check_column(self.rows, frame, source=self.source, column=column)
        return {"column": column, "frame": frame or "corners", "is_stated": bool(frame), "doubts": doubts}


def in_words(frame: Mapping[str, Any]) -> str:
    """The frame of a shard's boxes, for people: ``rows with boxes, read as thousandths (stated)``."""
    doubts = "".join(f"; {doubt}" for doubt in frame["doubts"])
    return f"rows with boxes, read as {frame['frame']} ({'stated' if frame['is_stated'] else 'not stated'}){doubts}"


def _in_pixels(boxes: UserBoxes, images: tuple[ImageRef, ...]) -> Iterator[TruthBox]:
    for label, sides, image, are_corners in boxes.boxes:
        ref = _image(images, label, image)
        with raised_as(lambda error: RowError(Reason.MALFORMED_ROW, f"column {boxes.column!r}: {error}"), ValueError):
            box = box_in_pixels(sides, boxes.frame or "corners", (ref.width, ref.height), are_corners=are_corners)
        yield TruthBox(label, *box, image=image)


def _image(images: tuple[ImageRef, ...], label: str, number: int) -> ImageRef:
    if not 0 <= number < len(images):
        raise RowError(Reason.BOX_OUTSIDE_IMAGE, f"the box of {label!r} is in image {number}, there is none")
    return images[number]


def _check_boxes(truth: Truth, images: tuple[ImageRef, ...]) -> None:
    for box in truth.boxes:
        image = _image(images, box.label, box.image)
        if not box.box.fits(image.width, image.height):
            evidence = f"the box {tuple(box.box)} of {box.label!r} is not inside {image.width}x{image.height}"
            raise RowError(Reason.BOX_OUTSIDE_IMAGE, evidence)


def _rejected(source: str, row: SourceRow | BadRow, error: RowError) -> Reject:
    if error.reason is Reason.REMOVED:
        content: Mapping[str, Any] = {}
    elif isinstance(row, BadRow):
        content = row.content
    else:
        sizes = {name: [f"{len(data)} bytes" for data in getattr(row, name)] for name in ("images", "videos")}
        optional = {"files": any(row.files), "cuts": row.cuts, "boxes": row.boxes}
        left_out = {"unread", "label_choice", *(name for name, value in optional.items() if not value)}
        content = {name: value for name, value in {**asdict(row), **sizes}.items() if name not in left_out}
    kept = shortened(content, longest=_LONGEST // 20)
    return reject(error.reason, error.evidence, stage=STAGE, row=kept, source=source, source_row=row.row)
