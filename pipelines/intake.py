"""Intake: a source's rows become samples; what is damaged, wrong or there twice becomes a typed reject."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pipelines.answers import letter_of
from pipelines.digest import digest
from pipelines.images import ImageStore
from pipelines.records import ImageRef, Reject, Sample, Truth, VideoRef, to_row
from pipelines.rejects import Reason, RowFault, reject, storable
from pipelines.sources.base import BadRow, Source, SourceRow

STAGE = "samples"


@dataclass(frozen=True, slots=True)
class Intake:
    """One shard taken in: ``n_in`` counts every row that the source gave."""

    samples: list[Sample]
    rejects: list[Reject]
    n_in: int


def take_in(source: Source, shard: int, store: ImageStore) -> Intake:
    """The shard's samples, in the source's order, and its rejects. Images and videos are stored on the way."""
    samples: dict[str, Sample] = {}
    rejects: list[Reject] = []
    n_in = 0
    for row in source.rows(shard):
        n_in += 1
        try:
            sample = _sample(source.name, row, store)
            if sample.sample_id in samples:
                raise RowFault(Reason.DUPLICATE, f"the same content as {samples[sample.sample_id].source_row}")
        except RowFault as fault:
            rejects.append(_rejected(source.name, row, fault))
        else:
            samples[sample.sample_id] = sample
    return Intake(list(samples.values()), rejects, n_in)


def _sample(source: str, row: SourceRow | BadRow, store: ImageStore) -> Sample:
    if isinstance(row, BadRow):
        raise RowFault(row.reason, row.evidence)
    answer = _checked_answer(row)
    images = tuple(_stored(data, n, store) for n, data in enumerate(row.images))
    videos = tuple(_stored_video(data, n, store) for n, data in enumerate(row.videos))
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
    if any(text != storable(text) for text in (*texts, row.truth.details or "")):
        raise RowFault(Reason.MALFORMED_ROW, "a text holds a lone surrogate, which is no character")
    if not row.question.strip():
        raise RowFault(Reason.MALFORMED_ROW, "the question is empty")
    if not row.answer.strip():
        raise RowFault(Reason.MALFORMED_ROW, "the answer is empty")
    if not row.choices:
        return row.answer
    try:
        letter = letter_of(row.answer, row.choices)
    except ValueError as fault:
        raise RowFault(Reason.MALFORMED_ROW, str(fault)) from fault
    if letter is None:
        raise RowFault(Reason.MALFORMED_ROW, f"the answer {row.answer!r} is none of the choices")
    return letter


def _stored(data: bytes, n: int, store: ImageStore) -> ImageRef:
    try:
        return store.ingest(data)
    except RowFault as fault:
        raise RowFault(fault.reason, f"image {n}: {fault.evidence}") from fault


def _stored_video(data: bytes, n: int, store: ImageStore) -> VideoRef:
    try:
        return store.add_video(data)
    except RowFault as fault:
        raise RowFault(fault.reason, f"video {n}: {fault.evidence}") from fault


def _check_boxes(truth: Truth, images: tuple[ImageRef, ...]) -> None:
    for box in truth.boxes:
        if not 0 <= box.image < len(images):
            raise RowFault(Reason.BOX_OUTSIDE_IMAGE, f"the box of {box.label!r} is in image {box.image}, there is none")
        image = images[box.image]
        if not box.box.fits(image.width, image.height):
            raise RowFault(
                Reason.BOX_OUTSIDE_IMAGE,
                f"the box {tuple(box.box)} of {box.label!r} is not inside {image.width}x{image.height}",
            )


def _rejected(source: str, row: SourceRow | BadRow, fault: RowFault) -> Reject:
    content = row.content if isinstance(row, BadRow) else _without_bytes(row)
    return reject(fault.reason, fault.evidence, stage=STAGE, row=content, source=source, source_row=row.row)


def _without_bytes(row: SourceRow) -> dict[str, Any]:
    sizes = {name: [f"{len(data)} bytes" for data in getattr(row, name)] for name in ("images", "videos")}
    return {**asdict(row), **sizes}
