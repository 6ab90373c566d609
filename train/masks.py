"""What is trained of a row, seen token by token.

``darkroom inspect-mask`` prints a row as the model reads it: trained text in green, everything else dim, image tokens
counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import typer

from pipelines.layouts.turns import Row
from train.collating import IGNORED
from train.faults import TrainFault
from train.reading import Reader

_PADS = re.compile(r"(?:<\|image_pad\|>)+")
_PAD_LENGTH = len("<|image_pad|>")


class Segment(NamedTuple):
    """A run of tokens that are all trained or all not; ``<|image_pad|>×16`` stands for sixteen image tokens."""

    text: str
    trained: bool


class Piece(NamedTuple):
    """The smallest run of tokens that is text: mostly one token, more where a character takes several."""

    text: str
    ids: tuple[int, ...]
    trained: bool
    of_image: bool


@dataclass(frozen=True, slots=True)
class Mask:
    """A row as it is read for ``model``."""

    row: Row
    reader: Reader
    model: Path
    ids: Sequence[int]
    labels: Sequence[int]

    @property
    def n_trained(self) -> int:
        """Tokens in the loss."""
        return sum(label != IGNORED for label in self.labels)

    @property
    def n_of_images(self) -> int:
        """Tokens that stand for images."""
        return list(self.ids).count(self.reader.processor.image_token_id)

    @property
    def pieces(self) -> list[Piece]:
        """All tokens, in order."""
        return list(_pieces(self))


def mask_of(row: Row, reader: Reader, model: Path) -> Mask:
    """The row with its tokens and labels."""
    batch = reader.read([row])
    return Mask(row, reader, model, batch["input_ids"][0].tolist(), batch["labels"][0].tolist())


def inspect_mask(row: Row, reader: Reader) -> list[Segment]:
    """The row as segments of tokens, in order."""
    batch = reader.read([row])
    return segments(reader.processor.tokenizer, batch["input_ids"][0].tolist(), batch["labels"][0].tolist())


def segments(tokenizer: Any, ids: list[int], labels: list[int]) -> list[Segment]:
    """Tokens grouped by whether they have a label."""
    runs = groupby(zip(ids, labels, strict=True), key=lambda pair: pair[1] != IGNORED)
    decoded = [(tokenizer.decode([token for token, _ in run]), trained) for trained, run in runs]
    return [Segment(_PADS.sub(lambda pads: f"<|image_pad|>×{len(pads[0]) // _PAD_LENGTH}", t), on) for t, on in decoded]


def _pieces(mask: Mask) -> Iterator[Piece]:
    decode, image = mask.reader.processor.tokenizer.decode, mask.reader.processor.image_token_id
    held: list[int] = []
    for token, label, following in zip(mask.ids, mask.labels, [*mask.labels[1:], None], strict=True):
        held.append(token)
        text, ends = decode(held), following is None or (following == IGNORED) != (label == IGNORED)
        if "\ufffd" not in text or ends:  # part of a character decodes to a replacement character
            yield Piece(text, tuple(held), label != IGNORED, token == image)
            held = []


def row_at(dataset: Sequence[Path], index: int) -> Row:
    """One row of dataset folders. Raises ``TrainFault`` when there are not so many."""
    from train.rows import open_dataset

    rows = open_dataset(*dataset)
    if not 0 <= index < len(rows):
        raise TrainFault(f"no row {index}: {', '.join(map(str, dataset))} has rows 0 to {len(rows) - 1}")
    found: Row = rows[index]
    return found


def show(mask: Mask, html: Path | None) -> None:
    """Prints a mask, or writes it as a page."""
    from rich.console import Console

    from train.mask_views import page, print_mask

    if html is None:
        print_mask(mask, Console())
    else:
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(page(mask))
        typer.echo(html.resolve())
