"""Rows on an asset's page: samples and trajectories as thumbnails with their questions and answers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

import dagster as dg
from PIL import Image, ImageDraw

from darkroom.pipelines.inspection.pages import cell, embedded, inline_example, markdown_table
from darkroom.pipelines.records import ImageRef, Sample, Trajectory
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.samples import numbered_marks
from darkroom.pipelines.storage.images import ImageStore

THUMBNAIL_SIDE = 220
N_PREVIEWED = 4
N_EXAMPLES = 3


def samples_examples(samples: Iterable[Sample], store: ImageStore) -> dict[str, dg.MetadataValue]:
    """A few samples small enough for the UI to show them on the asset's page itself."""
    captioned = (
        (sample.images[0], f"{numbered_marks([sample.question])[0]} → **{sample.answer}**")
        for sample in samples
        if sample.images
    )
    return _examples(captioned, store)


def trajectories_examples(
    trajectories: Sequence[Trajectory], questions: Mapping[str, str], store: ImageStore
) -> dict[str, dg.MetadataValue]:
    """The last images of a few trajectories, small enough for the asset's page itself."""
    captioned = (
        (row.shown_images[-1], f"{questions.get(row.sample_id, '')} → **{row.answer}**")
        for row in trajectories
        if row.shown_images
    )
    return _examples(captioned, store)


def samples_preview(samples: Iterable[Sample], store: ImageStore) -> dg.MetadataValue:
    """The first samples with images; the target's boxes are drawn in."""
    rows = [
        (
            _thumbnail(sample.images[0], store, [box.box for box in sample.truth.boxes if box.image == 0]),
            cell(sample.question),
            cell(sample.answer),
            sample.source_row,
        )
        for sample in islice((sample for sample in samples if sample.images), N_PREVIEWED)
    ]
    return dg.MetadataValue.md(markdown_table(("image", "question", "answer", "row"), rows))


def trajectories_preview(
    trajectories: Iterable[Trajectory], questions: Mapping[str, str], store: ImageStore
) -> dg.MetadataValue:
    """The first trajectories: image, question, last thought, its observation, answer."""
    rows = [
        (
            _thumbnail(trajectory.images[0], store) if trajectory.images else "",
            cell(questions.get(trajectory.sample_id, "")),
            cell(trajectory.rounds[-1].thought),
            " ".join(_thumbnail(image, store) for image in trajectory.rounds[-1].observation.images[:2]),
            cell(trajectory.answer),
        )
        for trajectory in islice((trajectory for trajectory in trajectories if trajectory.rounds), N_PREVIEWED)
    ]
    return dg.MetadataValue.md(markdown_table(("image", "question", "thought", "observation", "answer"), rows))


def _thumbnail(ref: ImageRef, store: ImageStore, boxes: Iterable[Box] = ()) -> str:
    small, scale = _reduced(_Stored(ref, store))
    thumbnail = small.copy()
    draw = ImageDraw.Draw(thumbnail)
    for box in boxes:
        x1, y1, x2, y2 = (round(side * scale) for side in box)
        draw.rectangle((x1 - 2, y1 - 2, x2 + 2, y2 + 2), outline=(255, 0, 90), width=2)
    return embedded(thumbnail, "JPEG", quality=80)


@dataclass(frozen=True, slots=True)
class _Stored:
    """An image, whichever object its store is: every stage of a family opens another one."""

    ref: ImageRef
    store: ImageStore = field(compare=False)


@lru_cache(maxsize=256)
def _reduced(image_of: _Stored) -> tuple[Image.Image, float]:
    """At most ``THUMBNAIL_SIDE`` a side, and its scale. Several stages of a family show the same large images."""
    image = image_of.store.open(image_of.ref).convert("RGB")
    scale = min(1.0, THUMBNAIL_SIDE / max(image.size))
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    return image.resize(size, Image.Resampling.BOX), scale


def _examples(captioned: Iterable[tuple[ImageRef, str]], store: ImageStore) -> dict[str, dg.MetadataValue]:
    first = enumerate(islice(captioned, N_EXAMPLES), 1)
    return {f"example_{n}": _example(_Stored(ref, store), text) for n, (ref, text) in first}


@lru_cache(maxsize=256)
def _example(image_of: _Stored, text: str) -> dg.MetadataValue:
    return dg.MetadataValue.md(inline_example(_reduced(image_of)[0], cell(text)[:200]))
