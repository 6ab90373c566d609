"""Checks rows against what the trainer will make of them, before the first step.

Every row: it renders, and its images are all shown, in order. A sample of rows, tokenized by the very collator that
trains: one run of image tokens per image, of the right length; exactly the model's own words trained, which leaves no
observation and no border token; at least one token trained; nothing longer than the model reads.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from datasets import Dataset

from pipelines.layouts.turns import Row
from train.conversations import Conversation, conversation
from train.faults import TrainFault
from train.reading import IGNORED, Reader

SAMPLED_ROWS = 32


@dataclass(frozen=True, slots=True)
class Conformance:
    """What was looked at; ``n_tokens`` and ``n_trained`` are sums over the sampled rows."""

    n_rows: int
    n_sampled: int
    n_tokens: int
    n_trained: int
    longest: int


def check_dataset(dataset: Dataset, outlines: Iterable[Row], *, reader: Reader, max_tokens: int) -> Conformance:
    """Raises ``TrainFault`` with the first bad row's id and what to do about it.

    ``outlines`` are the rows of ``dataset`` without pixels (``rows.rows_without_pixels``).
    """
    check_outlines(outlines)
    step = -(-len(dataset) // SAMPLED_ROWS)
    sampled = [
        check_tokens(dataset[index], reader=reader, max_tokens=max_tokens) for index in range(0, len(dataset), step)
    ]
    return Conformance(
        n_rows=len(dataset),
        n_sampled=len(sampled),
        n_tokens=sum(n for n, _ in sampled),
        n_trained=sum(n for _, n in sampled),
        longest=max(n for n, _ in sampled),
    )


def check_outlines(outlines: Iterable[Row]) -> None:
    """Every row renders and shows its images, whatever the layout."""
    for row in outlines:
        check_images(row, conversation(row, layout="turns"))


def check_images(row: Row, said: Conversation) -> None:
    """The conversation shows every image of the row once, in order."""
    named = [*range(row["n_question_images"]), *(i for turn in row["rounds"] for i in turn["observation"]["images"])]
    n_shown, n_images = sum(1 for _ in _parts(said, "image")), len(said.images)
    if not n_shown == n_images == len(row["image_refs"]) or named != list(range(n_images)):
        raise _fault(
            row,
            f"it shows {n_shown} images (numbers {named}), holds {n_images} and describes {len(row['image_refs'])}",
            "export the dataset again; if it stays, the row's `images` and `rounds` were edited apart from each other",
        )


def check_tokens(row: Row, *, reader: Reader, max_tokens: int) -> tuple[int, int]:
    """How many tokens the row has and how many of them are trained."""
    processor = reader.processor
    try:
        batch = reader.read([row])
    except ValueError as fault:
        raise _fault(row, str(fault), "the chat template drops or invents images") from fault
    ids, labels = batch["input_ids"][0].tolist(), batch["labels"][0].tolist()
    _check_image_tokens(row, ids, batch, processor)
    trained = [label for label in labels if label != IGNORED]
    if not trained:
        raise _fault(row, "none of its tokens is trained", "give it an answer, or take it out")
    said = processor.tokenizer.decode(trained)
    expected = "".join(trained_text(conversation(row, layout=reader.layout)))
    if unicodedata.normalize("NFC", said) != unicodedata.normalize("NFC", expected):
        raise _fault(
            row,
            f"the loss mask trains {_difference(said, expected)}",
            "a token straddles the border of an observation: end the text before it with a newline",
        )
    if len(ids) > max_tokens:
        raise _fault(row, f"it has {len(ids)} tokens, the model reads {max_tokens}", "lower --max-pixels or drop it")
    return len(ids), len(trained)


def trained_text(said: Conversation) -> Iterator[str]:
    """The model's own words that are in the loss, with the ends of its turns."""
    for message in said.messages:
        if message["role"] == "assistant":
            yield from (part["text"] for part in message["content"] if part.get("train"))
            if message["content"][-1].get("train"):
                yield "<|im_end|>"


def _check_image_tokens(row: Row, ids: list[int], batch: dict[str, Any], processor: Any) -> None:
    merged = processor.image_processor.merge_size**2
    grids = batch["image_grid_thw"].tolist() if "image_grid_thw" in batch else []
    expected = [t * h * w // merged for t, h, w in grids]
    n_found, n_expected = ids.count(processor.image_token_id), sum(expected)
    if len(grids) != len(row["images"] or []) or n_found != n_expected:
        raise _fault(
            row,
            f"it renders {n_found} image tokens, its {len(row['images'] or [])} images need {n_expected}",
            "the chat template or the processor drops or invents images",
        )


def _parts(said: Conversation, kind: str) -> Iterator[dict[str, Any]]:
    return (part for message in said.messages for part in message["content"] if part["type"] == kind)


def _difference(said: str, expected: str) -> str:
    start = next((i for i, pair in enumerate(zip(said, expected, strict=False)) if pair[0] != pair[1]), len(expected))
    return f"{said[start : start + 40]!r} where the model wrote {expected[start : start + 40]!r}"


def _fault(row: Row, found: str, remedy: str) -> TrainFault:
    return TrainFault(f"row {row['trajectory_id']} cannot be trained on: {found}; {remedy}")
