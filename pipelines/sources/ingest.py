"""Intake: a source's rows become samples; damaged, invalid and duplicate rows become typed rejects."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import zip_longest
from typing import TypeVar

from darkroom.pipelines.records import ImageRef, Reject, Sample, Truth, VideoRef, to_row
from darkroom.pipelines.records.answers import letter_of
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import Reason, RowError, reject, storable
from darkroom.pipelines.sources import BadRow, Source, SourceRow
from darkroom.pipelines.sources.answers import shows_words
from darkroom.pipelines.sources.intake_notes import IntakeNotes, NoteLine
from darkroom.pipelines.sources.mapping import shortened
from darkroom.pipelines.storage.images import ImageStore

STAGE = "samples"
_LONGEST = 200_000
"""Characters of a text: about the tokens of a model's context."""
Ref = TypeVar("Ref", ImageRef, VideoRef)


@dataclass(frozen=True, slots=True)
class Intake:
    """One ingested shard; ``n_in`` counts every row of the source."""

    samples: list[Sample]
    rejects: list[Reject]
    n_in: int
    notes: list[NoteLine]


def ingest_shard(source: Source, shard: int, store: ImageStore) -> Intake:
    """The shard's samples, in the source's order, and its rejects. Images and videos are stored on the way."""
    samples: dict[str, Sample] = {}
    rejects: list[Reject] = []
    notes = IntakeNotes()
    n_in = 0
    # rows about the image of the row before are frequent: it is decoded and checked once
    add_image = lru_cache(maxsize=4)(store.ingest)
    for row in source.rows(shard):
        n_in += 1
        notes.add_row(row)
        try:
            sample = _sample(source.name, row, add_image, store.add_video)
            if sample.sample_id in samples:
                raise RowError(Reason.DUPLICATE, f"the same content as {samples[sample.sample_id].source_row}")
        except RowError as error:
            rejects.append(_rejected(source.name, row, error))
        else:
            samples[sample.sample_id] = sample
            notes.add_sample(sample)
    return Intake(list(samples.values()), rejects, n_in, notes.lines())


def _sample(
    source: str,
    row: SourceRow | BadRow,
    add_image: Callable[[bytes], ImageRef],
    add_video: Callable[[bytes], VideoRef],
) -> Sample:
    if isinstance(row, BadRow):
        raise RowError(row.reason, row.evidence)
    answer = _checked_answer(row)
    names = _media_names(row)
    images = tuple(map(partial(_stored, add_image), row.images, names))
    videos = tuple(map(partial(_stored, add_video), row.videos, names[len(images) :]))
    _check_boxes(row.truth, images)
    content = {
        "images": [image.sha256 for image in images],
        "question": row.question,
        "choices": list(row.choices),
        "answer": answer,
        "truth": to_row(row.truth),
        **({"videos": [video.sha256 for video in videos]} if videos else {}),
    }
    return Sample(
        sample_id=digest(content),
        source=source,
        source_row=row.row,
        license=row.license,
        images=images,
        question=row.question,
        choices=row.choices,
        answer=answer,
        truth=row.truth,
        category=row.category,
        videos=videos,
    )


def _checked_answer(row: SourceRow) -> str:
    """The answer; of a multiple-choice question its letter, however the source spells it."""
    labels = [box.label for box in row.truth.boxes]
    texts = (row.row, row.question, row.answer, *row.choices, row.category, row.license, *labels)
    if (longest := max(map(len, texts))) > _LONGEST:
        raise RowError(Reason.MALFORMED_ROW, f"a text of {longest:,} characters, at most {_LONGEST:,}: cut it")
    if any(text != storable(text) or "\0" in text for text in (*texts, row.truth.details or "")):
        raise RowError(Reason.MALFORMED_ROW, "a text holds a lone surrogate or a NUL, which is no character")
    if not row.question.strip():
        raise RowError(Reason.MALFORMED_ROW, "the question is empty")
    if not row.answer.strip():
        raise RowError(Reason.MALFORMED_ROW, "the answer is empty")
    if row.answer.strip() == "NaN" and not row.choices and not shows_words(row.category):
        why = "the answer is NaN, a missing value; where an image shows the word, set the category to ocr or text"
        raise RowError(Reason.MALFORMED_ROW, why)
    if not row.choices:
        return row.answer
    try:
        letter = letter_of(row.answer, row.choices)
    except ValueError as error:
        raise RowError(Reason.MALFORMED_ROW, str(error)) from error
    if letter is None:
        raise RowError(Reason.MALFORMED_ROW, f"the answer {row.answer!r} is none of the choices")
    return letter


def _media_names(row: SourceRow) -> list[str]:
    """Names of the images, then of the videos: ``image 0 (street.jpg)``."""
    names = [f"{kind} {n}" for kind, files in (("image", row.images), ("video", row.videos)) for n in range(len(files))]
    return [f"{name} ({file})" if file else name for name, file in zip_longest(names, row.files[: len(names)])]


def _stored(add: Callable[[bytes], Ref], data: bytes, what: str) -> Ref:
    try:
        return add(data)
    except RowError as error:
        raise RowError(error.reason, f"{what}: {error.evidence}") from error


def _check_boxes(truth: Truth, images: tuple[ImageRef, ...]) -> None:
    for box in truth.boxes:
        if not 0 <= box.image < len(images):
            raise RowError(Reason.BOX_OUTSIDE_IMAGE, f"the box of {box.label!r} is in image {box.image}, there is none")
        image = images[box.image]
        if not box.box.fits(image.width, image.height):
            raise RowError(
                Reason.BOX_OUTSIDE_IMAGE,
                f"the box {tuple(box.box)} of {box.label!r} is not inside {image.width}x{image.height}",
            )


def _rejected(source: str, row: SourceRow | BadRow, error: RowError) -> Reject:
    if isinstance(row, BadRow):
        content = row.content
    else:
        sizes = {name: [f"{len(data)} bytes" for data in getattr(row, name)] for name in ("images", "videos")}
        content = {**asdict(row), **sizes}
        del content["unread"]
        if not any(content["files"]):
            del content["files"]
    return reject(
        error.reason,
        error.evidence,
        stage=STAGE,
        row=shortened(content, longest=_LONGEST // 20),
        source=source,
        source_row=row.row,
    )
